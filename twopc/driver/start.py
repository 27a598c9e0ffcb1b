"""Which checkpoint a run starts from, as a user names it."""

from __future__ import annotations

from pathlib import Path

from twopc.checkpoint_reference import locate
from twopc.config import RunSettings
from twopc.errors import ConfigurationError


def checkpoint_to_restore(settings: RunSettings, job: str) -> str:
    """Return "latest", "none" or a checkpoint id for `settings.restore_from`; ConfigurationError if it isn't there.

    What may be given is in `twopc.checkpoint_reference`.
    """
    wanted = settings.restore_from
    if wanted in ("latest", "none"):
        return wanted
    root = Path(settings.checkpoint_dir)
    found = locate(wanted, root, job)
    if found.checkpoint_dir.resolve() != root.resolve():
        raise ConfigurationError(f"{wanted} is in another checkpoint folder than this run's, {root}")
    return str(found.checkpoint_id)
