"""The states of a checkpoint that is shown: counted key by key, which means reading all of it, so seldom unless asked.

What the subtasks say of their keys is RocksDB's estimate, which counts a key again for each time that it was written.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from twopc.checkpoints.reference import Located
from twopc.cli.state_report import sizes_of
from twopc.cli.tables import size_text
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.inspect import Checkpoint
from twopc.protocol.facts import CheckpointMetadata

COUNTED_BYTES_MAX = 8 * 1024 * 1024
"""Snapshots of so much are counted unasked: that takes about a second."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The states with keys and bytes; None if they were not counted, and then why. `damage` is what was met."""

    states: list[dict[str, Any]] | None
    why_not: str = ""
    damage: CheckpointCorrupted | None = None


def count_states(located: Located, metadata: CheckpointMetadata, asked: bool | None) -> Counted:
    """Count if asked; if nobody said, where there is little to read."""
    size_bytes = sum(snapshot.state.size_bytes for snapshot in metadata.snapshots)
    if asked is None and size_bytes > COUNTED_BYTES_MAX:
        return Counted(None, f"keys are not counted in {size_text(size_bytes)} of snapshots: --states does")
    if asked is False:
        return Counted(None, "keys are not counted, as asked")
    try:
        with Checkpoint(located, metadata, {}, ExitStack()) as opened:
            return Counted(list(sizes_of(opened)))
    except ConfigurationError as error:
        # A running job has deleted it by now; what else is shown of it is true all the same.
        if asked:
            raise
        return Counted(None, f"keys are not counted: {error}")
    except CheckpointCorrupted as error:
        return Counted(None, "keys can't be counted: the checkpoint is damaged", error)
