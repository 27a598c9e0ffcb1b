"""The schedule of checkpoints: which is triggered next, and when. Pure; times are monotonic milliseconds.

    a savepoint > the final checkpoint > a manual one > the periodic one

What people ask for waits for room only: neither for the interval nor for the minimum pause. The final checkpoint is due
as soon as a stop is requested, or all subtasks are at the end of their input; a stop that drains waits for the latter.

Invariants: an id is durable before it is sent; ids are used in ascending order, each once; one whose storing failed is
never used, since whether it reached the disk is unknown; the queue of requests is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from coordinator.checkpoint import CheckpointRequest
from coordinator.events import DecisionBuilder
from coordinator.retention import to_forget
from twopc.errors import ConfigurationError, Unavailable
from twopc.protocol.attempt_facts import AttemptStarted
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId
from twopc.protocol.ledger_facts import CheckpointReserved
from twopc.protocol.ledger_state import LedgerState
from twopc.protocol.outcomes import AbortedCheckpoint
from twopc.protocol.times import Instant

MOST_REQUESTS = 1_000
LONGEST_LABEL = 128

SOON_MS = (250, 500)
"""The pauses before the first checkpoints of an attempt that goes on from one, where the interval is longer.

What waited for it is late as it is. There are two because a source may only just have begun to read at the first.
"""

RETRY_FINAL_MS = 1_000
"""The longest wait before a final checkpoint that was aborted is tried again."""


def earliest(times: Iterable[int | None]) -> int | None:
    """The first of those that there are; None if there is none."""
    found: int | None = None
    for time in times:
        if time is not None and (found is None or time < found):
            found = time
    return found


@dataclass(slots=True)
class Schedule:
    """The times that decide when the next checkpoint is due. `ready` is when all subtasks were attached first.

    `goes_on`: the attempt has restored a checkpoint. `triggers` counts its periodic ones.
    """

    settings: CheckpointSettings
    goes_on: bool = False
    ready: int | None = None
    triggered: int | None = None
    triggers: int = 0
    ended: int | None = None
    ended_badly: bool = False

    def trigger(self, now: int) -> None:
        """A periodic checkpoint is triggered."""
        self.triggered = now
        self.triggers += 1

    def completed(self, now: int) -> None:
        """A checkpoint has completed."""
        self.ended, self.ended_badly = now, False

    def failed(self, now: int) -> None:
        """A checkpoint has failed: the next waits for a whole interval again, so that no failure is repeated fast."""
        self.triggered = self.ended = now
        self.ended_badly = True

    def next_periodic(self) -> int | None:
        """An interval after the last trigger, and the minimum pause after the last end; None before all attached.

        The first of an attempt that goes on come sooner, until one fails.
        """
        if self.ready is None:
            return None
        due = (self.ready if self.triggered is None else self.triggered) + self._interval()
        if self.ended is not None:
            due = max(due, self.ended + self.settings.min_pause_ms)
        return due

    def _interval(self) -> int:
        if self.goes_on and not self.ended_badly and self.triggers < len(SOON_MS):
            return min(self.settings.interval_ms, SOON_MS[self.triggers])
        return self.settings.interval_ms

    def next_final(self) -> int | None:
        """At once, whatever interval and pause say; after an aborted one, a moment later."""
        if self.ready is None:
            return None
        if self.ended is None or not self.ended_badly:
            return self.ready
        return self.ended + min(self.settings.interval_ms, RETRY_FINAL_MS)

    def expires(self, triggered: int) -> int:
        """The time at which a checkpoint triggered then has taken too long."""
        return triggered + self.settings.timeout_ms


class RequestQueue:
    """The manual checkpoints and savepoints that are not triggered yet."""

    def __init__(self) -> None:
        self._savepoints: list[CheckpointRequest] = []
        self._manual: list[CheckpointRequest] = []

    def put(self, request: CheckpointRequest) -> None:
        """Enter a request; raise Unavailable if there are too many."""
        if len(self) >= MOST_REQUESTS:
            raise Unavailable(
                f"{FailureReason.TOO_MANY_CHECKPOINT_REQUESTS}: {MOST_REQUESTS} requests for checkpoints are waiting "
                "already; ask again when some of them are answered"
            )
        (self._savepoints if request.kind is CheckpointKind.SAVEPOINT else self._manual).append(request)

    @property
    def first(self) -> CheckpointRequest | None:
        waiting = self._savepoints or self._manual
        return waiting[0] if waiting else None

    @property
    def waiting(self) -> tuple[CheckpointRequest, ...]:
        """All of them, in the order in which they are to be triggered."""
        return (*self._savepoints, *self._manual)

    @property
    def oldest(self) -> int | None:
        """The time at which the oldest of them was asked for, in monotonic milliseconds."""
        return min((request.since.monotonic_ms for request in self.waiting), default=None)

    def remove(self, request: CheckpointRequest) -> None:
        (self._savepoints if request.kind is CheckpointKind.SAVEPOINT else self._manual).remove(request)

    def clear(self) -> tuple[CheckpointRequest, ...]:
        """Take all of them out."""
        waiting = self.waiting
        self._savepoints, self._manual = [], []
        return waiting

    def __len__(self) -> int:
        return len(self._savepoints) + len(self._manual)


class CheckpointTrigger:
    """Chooses what is triggered next, and reserves an id for it."""

    def __init__(self, started: AttemptStarted, schedule: Schedule, requests: RequestQueue) -> None:
        self._attempt = started.attempt
        self._settings = started.settings
        self._schedule = schedule
        self._requests = requests
        self._reserving: CheckpointRequest | None = None
        self._burnt = NO_CHECKPOINT

    def due(self, state: LedgerState, all_at_end: bool) -> int | None:
        """The time of the next trigger, where there is room for it; None before all were attached."""
        match self._next_kind(state, all_at_end):
            case CheckpointKind.FINAL | CheckpointKind.FINAL_SAVEPOINT:
                return self._schedule.next_final()
            case CheckpointKind.PERIODIC:
                return self._schedule.next_periodic()
            case _:
                return self._schedule.ready

    def reserve(
        self, state: LedgerState, all_at_end: bool, aborted: tuple[AbortedCheckpoint, ...], out: DecisionBuilder
    ) -> None:
        """Ask for the id of what is due to be stored; a request waits in the queue until that is known.

        With it goes what was aborted meanwhile, which is worth no fact of its own.
        """
        request = self._next(state, all_at_end, out.now)
        # Ids are never used again: an old acknowledgement would complete a new checkpoint.
        checkpoint_id = CheckpointId(max(state.last_reserved, self._burnt) + 1)
        self._reserving = request
        # Deleted is what no recovery can need any more: `to_forget` keeps what a loss may be written again from.
        forgotten = to_forget(state.completed, self._settings.retained, state.still_restored)
        out.store(CheckpointReserved(checkpoint_id, self._attempt, request.kind, forgotten, out.now.unix_ms, aborted))

    def reserved(self, fact: CheckpointReserved, now: Instant) -> CheckpointRequest:
        """The id is durable: return what it is for."""
        return self._reserved_for(fact, now)

    def not_reserved(self, fact: CheckpointReserved, now: Instant) -> CheckpointRequest:
        """Storing the id failed: return what it was for."""
        self._burnt = fact.checkpoint_id
        return self._reserved_for(fact, now)

    def _next_kind(self, state: LedgerState, all_at_end: bool) -> CheckpointKind:
        first = self._requests.first
        if first is not None and first.kind is CheckpointKind.SAVEPOINT:
            return first.kind
        stop = state.stop
        if all_at_end or (stop is not None and not stop.drain):
            return CheckpointKind.FINAL_SAVEPOINT if stop is not None and stop.savepoint else CheckpointKind.FINAL
        return CheckpointKind.PERIODIC if first is None else first.kind

    def _next(self, state: LedgerState, all_at_end: bool, now: Instant) -> CheckpointRequest:
        kind, first = self._next_kind(state, all_at_end), self._requests.first
        if first is not None and first.kind is kind:
            return first
        return CheckpointRequest(kind, now, state.stop.label if state.stop is not None and kind.ends_job else "")

    def _reserved_for(self, fact: CheckpointReserved, now: Instant) -> CheckpointRequest:
        request, self._reserving = self._reserving or CheckpointRequest(fact.kind, now), None
        if request.request_id:
            self._requests.remove(request)
        return request


def check_request(kind: CheckpointKind, label: str, request_id: str) -> None:
    """Raise ConfigurationError for what nobody may request."""
    if not request_id:
        raise ConfigurationError("request_id is empty: whoever asks for a checkpoint names the request")
    if kind not in (CheckpointKind.MANUAL, CheckpointKind.SAVEPOINT):
        raise ConfigurationError(
            f"a {kind} checkpoint can't be asked for: ask for a manual one, a savepoint, or a stop"
        )
    if len(label) > LONGEST_LABEL or not label.isprintable():
        raise ConfigurationError(f"a checkpoint's label may have {LONGEST_LABEL} printable characters, on one line")
