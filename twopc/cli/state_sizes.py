"""The sizes of a checkpoint's states, in keys and bytes.

Counting them reads the whole checkpoint, so `twopc checkpoints show` counts a large one with --states only. Metadata
hold RocksDB's estimate, which counts a key again for each time that it was written.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from twopc.checkpoints.reference import LocatedCheckpoint
from twopc.cli.state_report import sizes_of
from twopc.cli.tables import size_text
from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.inspect import Checkpoint
from twopc.protocol.facts import CheckpointMetadata

COUNTED_BYTES_MAX = 8 * 1024 * 1024
"""Counting takes about a second for snapshots of this size; larger ones are counted only with --states."""


@dataclass(frozen=True, slots=True)
class StateSizes:
    """The states with keys and bytes; or None, and why they were not counted. `damage` is what the count met."""

    states: list[dict[str, Any]] | None
    why_not: str = ""
    damage: CheckpointCorrupted | None = None


def state_sizes(located: LocatedCheckpoint, metadata: CheckpointMetadata, asked: bool | None) -> StateSizes:
    """Count the keys: with --states always, with --no-states never, else where there is little to read."""
    size_bytes = sum(snapshot.state.size_bytes for snapshot in metadata.snapshots)
    if asked is None and size_bytes > COUNTED_BYTES_MAX:
        return StateSizes(None, f"keys are not counted in {size_text(size_bytes)} of snapshots: --states does")
    if asked is False:
        return StateSizes(None, "keys are not counted, as asked")
    try:
        with Checkpoint(located, metadata, {}, ExitStack()) as opened:
            return StateSizes(list(sizes_of(opened)))
    except ConfigurationError as error:
        # A running job has deleted it by now; what else is shown of it is true all the same.
        if asked:
            raise
        return StateSizes(None, f"keys are not counted: {error}")
    except CheckpointCorrupted as error:
        return StateSizes(None, "keys can't be counted: the checkpoint is damaged", error)
