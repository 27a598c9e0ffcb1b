"""What stands beside an offset of a group that a transaction of ours committed: the witness of its outcome. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from twopc.protocol.ids import NO_ATTEMPT, AttemptId, CheckpointId


@dataclass(frozen=True, slots=True)
class WitnessMetadata:
    """The metadata beside a group's offset. Without topic id or attempt, as earlier versions left it, it says less."""

    checkpoint_id: CheckpointId
    topic_id: str
    attempt: AttemptId = NO_ATTEMPT

    def __str__(self) -> str:
        topic = f" topic={self.topic_id}" if self.topic_id else ""
        return f"checkpoint={self.checkpoint_id}{topic}" + (f" attempt={self.attempt}" if self.attempt else "")

    @classmethod
    def parse(cls, text: str) -> WitnessMetadata | None:
        """Return what a job of ours has left; None for what others have."""
        found = _WITNESS.fullmatch(text)
        if found is None:
            return None
        return cls(CheckpointId(int(found[1])), found[2] or "", AttemptId(int(found[3] or NO_ATTEMPT)))

    def is_of(self, checkpoint_id: CheckpointId, topic_id: str) -> bool:
        return self.checkpoint_id == checkpoint_id and self.topic_id in (topic_id, "")


_WITNESS = re.compile(r"checkpoint=(\d+)(?: topic=(\S+))?(?: attempt=(\d+))?")


def witness_metadata(checkpoint_id: CheckpointId, topic_id: str, attempt: AttemptId) -> str:
    """Return the metadata of an offset committed inside a transaction: its checkpoint, topic and attempt."""
    return str(WitnessMetadata(checkpoint_id, topic_id, attempt))
