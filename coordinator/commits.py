"""Which subtask has committed up to which checkpoint: said, and stored. Pure.

Invariants:
- what is stored never exceeds what was said;
- a subtask that has committed a checkpoint has committed every earlier one (a lost notification is subsumed).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.instant import Instant
from twopc.protocol.ledger_state import CompletedCheckpoint

Claims = Mapping[SubtaskIndex, CheckpointId]
"""Up to which checkpoint each of these subtasks says that it has committed."""


@dataclass(slots=True)
class Commits:
    """The commits of one attempt. `completed_at` holds the checkpoints that not all subtasks have committed."""

    parallelism: int
    completed_at: dict[CheckpointId, Instant] = field(default_factory=dict)
    _said: dict[SubtaskIndex, CheckpointId] = field(default_factory=dict)
    _stored: dict[SubtaskIndex, CheckpointId] = field(default_factory=dict)

    def say(self, subtask: SubtaskIndex, checkpoint_id: CheckpointId) -> None:
        """A subtask says that it has committed everything up to this completed checkpoint."""
        self._said[subtask] = max(checkpoint_id, self._said.get(subtask, checkpoint_id))

    def claims(self) -> Claims:
        """What was said and is not stored yet."""
        if self._said == self._stored:
            return {}
        return {
            subtask: said for subtask, said in self._said.items() if said > self._stored.get(subtask, CheckpointId(0))
        }

    def store(self, claims: Claims) -> None:
        self._stored.update(claims)

    def committed(self, subtask: SubtaskIndex) -> CheckpointId:
        return self._stored.get(subtask, CheckpointId(0))

    def everywhere(self) -> CheckpointId:
        """The greatest checkpoint that all subtasks have committed; 0 for none."""
        return min(self.committed(SubtaskIndex(index)) for index in range(self.parallelism))

    def forget(self, checkpoint_id: CheckpointId) -> None:
        """Everyone has committed up to here: when those checkpoints completed no longer matters."""
        self.completed_at = {each: at for each, at in self.completed_at.items() if each > checkpoint_id}


def claimed_names(claims: Claims, completed: Sequence[CompletedCheckpoint]) -> tuple[str, ...]:
    """The committables that these claims confirm: those outstanding in any checkpoint up to the claimed one."""
    names = {
        name
        for checkpoint in completed
        for subtask, claimed in claims.items()
        if checkpoint.checkpoint_id <= claimed
        for name in checkpoint.outstanding_of(subtask)
    }
    return tuple(sorted(names))
