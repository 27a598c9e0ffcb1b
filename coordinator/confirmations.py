"""Storing that subtasks have committed: what they said becomes durable, then an event. Pure.

Invariants: a confirmation is told only after it is stored; where storing failed it is tried again, not before a while
has passed, so that nobody spins on a full disk.
"""

from __future__ import annotations

from coordinator.commits import Claims, Commits, claimed_names
from coordinator.outbox import Outbox
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.job_events import JobEventKind
from twopc.protocol.ledger_facts import CommittablesConfirmed
from twopc.protocol.ledger_state import LedgerState

RETRY_STORE_MS = 1_000
"""How long to wait before storing is tried again, where nothing else would ask for it soon."""


class Confirmations:
    """The commits of one attempt, said and stored."""

    def __init__(self, parallelism: int) -> None:
        self._commits = Commits(parallelism)
        self._storing: Claims = {}
        self._retry_at: int | None = None

    def completed(self, checkpoint_id: CheckpointId, out: Outbox) -> None:
        """From now on it can be committed."""
        self._commits.completed_at[checkpoint_id] = out.now

    def say(self, subtask: SubtaskIndex, checkpoint_id: CheckpointId) -> None:
        self._commits.say(subtask, checkpoint_id)

    def committed(self, subtask: SubtaskIndex) -> CheckpointId:
        return self._commits.committed(subtask)

    def everywhere(self) -> CheckpointId:
        return self._commits.everywhere()

    def may_store(self, now_ms: int) -> bool:
        """Whether storing may be tried (again)."""
        if self._retry_at is not None and now_ms >= self._retry_at:
            # Else the deadline would stay in the past, and whoever waits for it would spin.
            self._retry_at = None
        return self._retry_at is None

    @property
    def retry_at(self) -> int | None:
        """When to try again what could not be stored; None if nothing failed."""
        return self._retry_at

    def settle(self, state: LedgerState, out: Outbox) -> bool:
        """Return whether confirmations have to be stored first."""
        claims = self._commits.claims()
        if not claims:
            return False
        names = claimed_names(claims, state.completed)
        if names:
            self._storing = claims
            out.store(CommittablesConfirmed(max(claims.values()), names))
        else:
            self._commit(claims, out)
        return bool(names)

    def stored(self, out: Outbox) -> None:
        """The claims that were being stored are durable."""
        claims, self._storing = self._storing, {}
        self._commit(claims, out)

    def not_stored(self, now_ms: int) -> None:
        self._storing = {}
        self._retry_at = now_ms + RETRY_STORE_MS

    def _commit(self, claims: Claims, out: Outbox) -> None:
        before = self._commits.everywhere()
        self._commits.store(claims)
        for subtask, checkpoint_id in claims.items():
            out.publish(JobEventKind.COMMITTED, checkpoint_id=checkpoint_id, subtask=subtask)
        everywhere = self._commits.everywhere()
        if everywhere > before:
            since = self._commits.completed_at.get(everywhere, out.now)
            duration = float(out.now.monotonic_ms - since.monotonic_ms)
            out.publish(JobEventKind.CONFIRMED, checkpoint_id=everywhere, duration_ms=duration)
            self._commits.forget(everywhere)
