"""The times of a completed checkpoint's phases, as far as it and the ledger have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twopc.protocol.completed_checkpoint import CompletedCheckpoint
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import SubtaskIndex
from twopc.protocol.times import SubtaskTimes


@dataclass(frozen=True, slots=True)
class CheckpointTimes:
    """Unix milliseconds, on the clock of the coordinator; None for what nobody has written down.

    triggered_ms: the subtasks were told to take it.
    acknowledged_ms: all had acknowledged.
    completed_ms: metadata and completion record were durable, and the subtasks were told to commit; known once there
        was a commit to confirm.
    confirmed_ms: that all of its transactions are committed was stored.
    subtasks: empty for a checkpoint of a version of this program that did not measure.
    """

    triggered_ms: int
    acknowledged_ms: int
    completed_ms: int | None
    confirmed_ms: int | None
    subtasks: Mapping[SubtaskIndex, SubtaskTimes]

    def to_json(self) -> dict[str, Any]:
        return {
            "triggered_ms": self.triggered_ms,
            "acknowledged_ms": self.acknowledged_ms,
            "completed_ms": self.completed_ms,
            "confirmed_ms": self.confirmed_ms,
            "subtasks": [
                {
                    "subtask": subtask,
                    "waited_ms": round(timing.waited_ms, 2),
                    "pre_commit_ms": timing.pre_commit_ms,
                    "pause_ms": timing.pause_ms,
                    "write_ms": timing.write_ms,
                    "store_ms": timing.store_ms,
                    "acknowledged_ms": timing.acknowledged_ms,
                }
                for subtask, timing in self.subtasks.items()
            ],
        }


def times_of(metadata: CheckpointMetadata, completed: CompletedCheckpoint) -> CheckpointTimes:
    """Return a checkpoint's times, as far as they are known."""
    subtasks = [snapshot.subtask for snapshot in metadata.snapshots]
    return CheckpointTimes(
        triggered_ms=metadata.triggered_ms,
        acknowledged_ms=metadata.acknowledged_ms,
        completed_ms=completed.completed_ms or None,
        confirmed_ms=None if completed.outstanding else completed.confirmed_ms or None,
        subtasks=dict(zip(subtasks, metadata.times, strict=False)),
    )
