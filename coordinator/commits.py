"""Which subtask has committed up to which checkpoint: said, and stored. Pure.

Invariants:
- what is stored never exceeds what was said;
- a subtask that has committed a checkpoint has committed every earlier one (a lost notification is subsumed);
- entering what one subtask says costs the same with ten thousand others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twopc.protocol.completed import CompletedCheckpoint
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId, SubtaskIndex
from twopc.protocol.instant import Instant

Claims = Mapping[SubtaskIndex, CheckpointId]
"""Up to which checkpoint each of these subtasks says that it has committed."""


class Progression:
    """Up to which checkpoint each subtask has come; none goes back."""

    def __init__(self, parallelism: int) -> None:
        self._of: dict[SubtaskIndex, CheckpointId] = {}
        self._standing_at = {NO_CHECKPOINT: parallelism}

    def advance(self, subtask: SubtaskIndex, checkpoint_id: CheckpointId) -> None:
        before = self.of(subtask)
        if checkpoint_id <= before:
            return
        self._of[subtask] = checkpoint_id
        self._standing_at[checkpoint_id] = self._standing_at.get(checkpoint_id, 0) + 1
        self._standing_at[before] -= 1
        if not self._standing_at[before]:
            del self._standing_at[before]

    def of(self, subtask: SubtaskIndex) -> CheckpointId:
        return self._of.get(subtask, NO_CHECKPOINT)

    @property
    def everywhere(self) -> CheckpointId:
        """The greatest checkpoint to which all subtasks have come; 0 for none."""
        return min(self._standing_at)


class Commits:
    """The commits of one attempt."""

    def __init__(self, parallelism: int) -> None:
        self._said = Progression(parallelism)
        self._stored = Progression(parallelism)
        self._claims: dict[SubtaskIndex, CheckpointId] = {}
        self._completed_at: dict[CheckpointId, Instant] = {}

    def completed(self, checkpoint_id: CheckpointId, now: Instant) -> None:
        """From now on it can be committed."""
        self._completed_at[checkpoint_id] = now

    def say(self, subtask: SubtaskIndex, checkpoint_id: CheckpointId) -> None:
        """A subtask says that it has committed everything up to this completed checkpoint."""
        self._said.advance(subtask, checkpoint_id)
        if checkpoint_id > self._stored.of(subtask):
            self._claims[subtask] = self._said.of(subtask)

    @property
    def claims(self) -> Claims:
        """What was said and is not stored yet."""
        return self._claims

    def store(self) -> Claims:
        """What was said is stored; return what of it was not before."""
        claims, self._claims = self._claims, {}
        for subtask, checkpoint_id in claims.items():
            self._stored.advance(subtask, checkpoint_id)
        return claims

    def said_by(self, subtask: SubtaskIndex) -> CheckpointId:
        return self._said.of(subtask)

    def committed(self, subtask: SubtaskIndex) -> CheckpointId:
        return self._stored.of(subtask)

    @property
    def said_everywhere(self) -> CheckpointId:
        """The greatest checkpoint of which all subtasks say that they have committed it; 0 for none."""
        return self._said.everywhere

    @property
    def everywhere(self) -> CheckpointId:
        """The greatest checkpoint of which all commits are stored; 0 for none."""
        return self._stored.everywhere

    def completed_at(self, checkpoint_id: CheckpointId) -> Instant | None:
        """When this checkpoint completed; None if that was before this attempt, or all have committed it."""
        return self._completed_at.get(checkpoint_id)

    def pop_completed_at(self, checkpoint_id: CheckpointId) -> Instant | None:
        """When this checkpoint completed; that, and when earlier ones did, no longer matters after this."""
        at = self._completed_at.get(checkpoint_id)
        self._completed_at = {each: when for each, when in self._completed_at.items() if each > checkpoint_id}
        return at


def claimed_names(claims: Claims, completed: Sequence[CompletedCheckpoint]) -> dict[str, CheckpointId]:
    """The committables that these claims confirm, each with the newest checkpoint that is kept and names it.

    Those are what is outstanding in any checkpoint up to the claimed one.
    """
    return {
        name: checkpoint.checkpoint_id
        for checkpoint in completed
        if checkpoint.outstanding
        for subtask, claimed in claims.items()
        if checkpoint.checkpoint_id <= claimed
        for name in checkpoint.outstanding_of(subtask)
    }
