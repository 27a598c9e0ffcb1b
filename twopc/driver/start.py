"""Which checkpoint a run starts from, as a user names it."""

from __future__ import annotations

from pathlib import Path

from twopc.checkpoints import jobs, read_job
from twopc.config import RunSettings
from twopc.errors import ConfigurationError


def checkpoint_to_restore(settings: RunSettings, job: str) -> str:
    """Return "latest", "none" or a checkpoint id for `settings.restore_from`; ConfigurationError if it isn't there.

    A checkpoint is named by its id (7 or chk-7) or by the path of its folder, which must be the job's own, under the
    checkpoint_dir of this run.
    """
    wanted = settings.restore_from
    if wanted in ("latest", "none"):
        return wanted
    root = Path(settings.checkpoint_dir)
    name = wanted.removeprefix("chk-")
    if not name.isdecimal():
        name = _id_from_path(Path(wanted), root / job, job)
    found = read_job(root, job).completed if job in jobs(root) else ()
    completed = [str(checkpoint.checkpoint_id) for checkpoint in found]
    if name not in completed:
        raise ConfigurationError(
            f"checkpoint {wanted} of job {job!r} isn't there, or never completed; "
            f"under {root} there are: {', '.join(completed) or 'none'} (see: twopc checkpoints list)"
        )
    return name


def _id_from_path(folder: Path, expected_parent: Path, job: str) -> str:
    if not folder.is_dir():
        raise ConfigurationError(
            f"there is no checkpoint {str(folder)!r}: give --from an id, the path of a chk-<id> folder, "
            "'latest' or 'none'"
        )
    if folder.resolve().parent != expected_parent.resolve() or not folder.name.startswith("chk-"):
        owner = folder.resolve().parent.name
        raise ConfigurationError(
            f"{folder} is not a checkpoint of job {job!r} under this run's checkpoint_dir: it belongs to {owner!r}, "
            f"and this job's are in {expected_parent}"
        )
    return folder.name.removeprefix("chk-")
