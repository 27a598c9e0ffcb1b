"""Storing that subtasks have committed: what they said becomes durable, then an event. Pure.

Nobody waits for a confirmation before the final checkpoint: a subtask gets no answer to what it said, its slots are
free when a later checkpoint completes, and says it again to a coordinator that has forgotten. What hangs on one being
durable is that older checkpoints may be forgotten, that a transaction of which the broker can't tell any more is not
taken for lost, and the end of the job. So one fact holds what many subtasks said: it is stored as soon as the last of
them has said so of the newest checkpoint, and WAIT_MS after the first else, for those that are late.

Invariants: a confirmation is told only after it is stored; where storing failed it is tried again, not before a while
has passed, so that nobody spins on a full disk; a fact names a checkpoint that is kept, though what was said may be of
one that was forgotten in between.
"""

from __future__ import annotations

from coordinator.commits import Commits, claimed_names
from coordinator.outbox import Outbox
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.instant import Instant
from twopc.protocol.job_events import JobEventKind
from twopc.protocol.ledger_facts import CommittablesConfirmed
from twopc.protocol.ledger_state import LedgerState

WAIT_MS = 100
"""How long what one subtask said waits for the others: shorter than what a person or a restart would notice."""

RETRY_STORE_MS = 1_000
"""How long to wait before storing is tried again, where nothing else would ask for it soon."""


class Confirmations:
    """The commits of one attempt, said and stored."""

    def __init__(self, parallelism: int) -> None:
        self._commits = Commits(parallelism)
        self._said_first: int | None = None
        self._retry_at: int | None = None
        self._storing = False

    def completed(self, checkpoint_id: CheckpointId, now: Instant) -> None:
        """From now on it can be committed."""
        self._commits.completed(checkpoint_id, now)

    def say(self, subtask: SubtaskIndex, checkpoint_id: CheckpointId, now: Instant) -> None:
        self._commits.say(subtask, checkpoint_id)
        if self._said_first is None and self._commits.claims:
            self._said_first = now.monotonic_ms

    def said_by(self, subtask: SubtaskIndex) -> CheckpointId:
        return self._commits.said_by(subtask)

    def committed(self, subtask: SubtaskIndex) -> CheckpointId:
        """Up to where that is durable."""
        return self._commits.committed(subtask)

    @property
    def everywhere(self) -> CheckpointId:
        return self._commits.everywhere

    def due(self, newest: CheckpointId) -> int | None:
        """When to store what was said, or to try again what could not be stored; None if there is nothing."""
        if self._retry_at is not None or self._said_first is None:
            return self._retry_at
        return self._said_first + (0 if self._commits.said_everywhere >= newest else WAIT_MS)

    def may_store(self, now_ms: int) -> bool:
        """Whether storing may be tried (again)."""
        if self._retry_at is not None and now_ms >= self._retry_at:
            # Else the deadline would stay in the past, and whoever waits for it would spin.
            self._retry_at = None
        return self._retry_at is None

    def settle(self, state: LedgerState, out: Outbox) -> bool:
        """Enter what was said, though it may not be due yet; return whether it has to be stored first."""
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

    def stored(self, out: Outbox) -> None:
        """A confirmation is durable: what subtasks said, or what the driver has settled."""
        if self._storing:
            self._storing = False
            self._enter(out)

    def not_stored(self, now_ms: int) -> None:
        self._storing = False
        self._retry_at = now_ms + RETRY_STORE_MS

    def _enter(self, out: Outbox) -> None:
        """Nothing of what was said has to be stored any more."""
        before = self._commits.everywhere
        self._said_first = None
        for subtask, checkpoint_id in self._commits.store().items():
            out.publish(JobEventKind.COMMITTED, checkpoint_id=checkpoint_id, subtask=subtask)
        everywhere = self._commits.everywhere
        if everywhere > before:
            since = self._commits.pop_completed_at(everywhere) or out.now
            duration = float(out.now.monotonic_ms - since.monotonic_ms)
            out.publish(JobEventKind.CONFIRMED, checkpoint_id=everywhere, duration_ms=duration)
