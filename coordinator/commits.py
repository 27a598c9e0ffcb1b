"""The commits of each subtask: up to which checkpoint it has acknowledged them, and they are stored. Pure.

Nobody waits for a confirmation before the final checkpoint: a subtask gets no answer when it reports a commit, its
slots are free when a later checkpoint completes, and it reports again to a coordinator that has forgotten. Three things
wait for a durable confirmation: older checkpoints may be forgotten; a transaction of which the broker can't tell any
more is not taken for lost; the job may end. So one fact holds what many subtasks reported: it is stored as soon as the
last of them has reported the newest checkpoint, and WAIT_MS after the first report else, for those that are late.

Invariants:
- what is stored never exceeds what subtasks reported;
- a subtask that has committed a checkpoint has committed every earlier one (a lost notification is subsumed);
- entering one report costs the same with ten thousand other subtasks;
- the event of a confirmation follows its storing; where storing failed it is tried again after a while, so that nobody
  spins on a full disk;
- a fact names a checkpoint that is kept, though the report may be of one that was forgotten in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator.events import DecisionBuilder
from twopc import events
from twopc.protocol.completed_checkpoint import CompletedCheckpoint
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId, SubtaskIndex
from twopc.protocol.ledger_facts import CommittablesConfirmed
from twopc.protocol.ledger_state import LedgerState
from twopc.protocol.times import Instant

WAIT_MS = 100
"""How long the report of one subtask waits for the others: shorter than what a person or a restart would notice."""

RETRY_STORE_MS = 1_000
"""How long to wait before storing is tried again, where nothing else would ask for it soon."""

Claims = Mapping[SubtaskIndex, CheckpointId]
"""Up to which checkpoint each of these subtasks reports that it has committed."""


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
    """The commits of one attempt, reported and stored."""

    def __init__(self, parallelism: int) -> None:
        self._reported = Progression(parallelism)
        self._stored = Progression(parallelism)
        self._claims: dict[SubtaskIndex, CheckpointId] = {}
        self._completed_at: dict[CheckpointId, Instant] = {}

    def completed(self, checkpoint_id: CheckpointId, now: Instant) -> None:
        """From now on it can be committed."""
        self._completed_at[checkpoint_id] = now

    def report(self, subtask: SubtaskIndex, checkpoint_id: CheckpointId) -> None:
        """A subtask reports that it has committed everything up to this completed checkpoint."""
        self._reported.advance(subtask, checkpoint_id)
        if checkpoint_id > self._stored.of(subtask):
            self._claims[subtask] = self._reported.of(subtask)

    @property
    def claims(self) -> Claims:
        """The claims that subtasks reported and that are not stored yet."""
        return self._claims

    def store(self) -> Claims:
        """All reports are stored now; return those that were not before."""
        claims, self._claims = self._claims, {}
        for subtask, checkpoint_id in claims.items():
            self._stored.advance(subtask, checkpoint_id)
        return claims

    def reported_by(self, subtask: SubtaskIndex) -> CheckpointId:
        return self._reported.of(subtask)

    def committed(self, subtask: SubtaskIndex) -> CheckpointId:
        return self._stored.of(subtask)

    @property
    def reported_everywhere(self) -> CheckpointId:
        """The greatest checkpoint that all subtasks report as committed; 0 for none."""
        return self._reported.everywhere

    @property
    def everywhere(self) -> CheckpointId:
        """The greatest checkpoint of which all commits are stored; 0 for none."""
        return self._stored.everywhere

    def completed_at(self, checkpoint_id: CheckpointId) -> Instant | None:
        """The time at which this checkpoint completed; None if before this attempt, or if all have committed it."""
        return self._completed_at.get(checkpoint_id)

    def pop_completed_at(self, checkpoint_id: CheckpointId) -> Instant | None:
        """Return the time at which this checkpoint completed, and forget it and earlier ones'."""
        at = self._completed_at.get(checkpoint_id)
        self._completed_at = {each: when for each, when in self._completed_at.items() if each > checkpoint_id}
        return at


class Confirmations:
    """The commits of one attempt on their way into the ledger."""

    def __init__(self, parallelism: int) -> None:
        self._commits = Commits(parallelism)
        self._first_report: int | None = None
        self._retry_at: int | None = None
        self._storing = False

    def completed(self, checkpoint_id: CheckpointId, now: Instant) -> None:
        """From now on it can be committed."""
        self._commits.completed(checkpoint_id, now)

    def report(self, subtask: SubtaskIndex, checkpoint_id: CheckpointId, now: Instant) -> None:
        self._commits.report(subtask, checkpoint_id)
        if self._first_report is None and self._commits.claims:
            self._first_report = now.monotonic_ms

    def reported_by(self, subtask: SubtaskIndex) -> CheckpointId:
        return self._commits.reported_by(subtask)

    def committed(self, subtask: SubtaskIndex) -> CheckpointId:
        """Up to which checkpoint its commits are durable."""
        return self._commits.committed(subtask)

    @property
    def everywhere(self) -> CheckpointId:
        return self._commits.everywhere

    def due(self, newest: CheckpointId) -> int | None:
        """The time to store the reports, or to try again what could not be stored; None if there is nothing."""
        if self._retry_at is not None or self._first_report is None:
            return self._retry_at
        return self._first_report + (0 if self._commits.reported_everywhere >= newest else WAIT_MS)

    def may_store(self, now_ms: int) -> bool:
        """Whether storing may be tried (again)."""
        if self._retry_at is not None and now_ms >= self._retry_at:
            # Else the deadline would stay in the past, and whoever waits for it would spin.
            self._retry_at = None
        return self._retry_at is None

    def settle(self, state: LedgerState, out: DecisionBuilder) -> bool:
        """Enter the reports, though they may not be due yet; return whether they have to be stored first."""
        names = claimed_names(self._commits.claims, state.completed)
        if names:
            self._storing = True
            newest = max(names.values())
            completed = self._commits.completed_at(newest)
            completed_ms = 0 if completed is None else completed.unix_ms
            out.store(CommittablesConfirmed(newest, tuple(sorted(names)), completed_ms, out.now.unix_ms))
        else:
            self._enter(out)
        return bool(names)

    def stored(self, out: DecisionBuilder) -> None:
        """A confirmation is durable: of the subtasks' reports, or of what the driver has settled."""
        if self._storing:
            self._storing = False
            self._enter(out)

    def not_stored(self, now_ms: int) -> None:
        self._storing = False
        self._retry_at = now_ms + RETRY_STORE_MS

    def _enter(self, out: DecisionBuilder) -> None:
        """No report has to be stored any more."""
        before = self._commits.everywhere
        self._first_report = None
        for subtask, checkpoint_id in self._commits.store().items():
            out.publish(events.CheckpointCommitted, checkpoint_id=checkpoint_id, subtask=subtask)
        everywhere = self._commits.everywhere
        if everywhere > before:
            since = self._commits.pop_completed_at(everywhere) or out.now
            duration = float(out.now.monotonic_ms - since.monotonic_ms)
            out.publish(events.CheckpointConfirmed, checkpoint_id=everywhere, duration_ms=duration)


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
