"""The timeline of a drill, from the events of its runs and from what the drill itself did."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from twopc import events
from twopc.drill.verdict import Moment


def _lane_and_text(event: events.Event) -> tuple[str, str] | None:
    """Return where a moment of the timeline stands, and what it says; None of what is none."""
    match event:
        case events.CheckpointCompleted(checkpoint_id=number, duration_ms=duration):
            return "checkpoints", f"checkpoint {number} completed in {duration:.0f} ms"
        case events.CheckpointAborted(checkpoint_id=number, message=message):
            return "checkpoints", f"checkpoint {number} aborted: {message}"
        case events.CheckpointConfirmed(checkpoint_id=number):
            return "transactions", f"all transactions of checkpoint {number} committed"
        case events.LossSettled(message=message):
            return "transactions", message
        case events.TransactionResumed(transaction=name):
            return "transactions", f"{name} resumed: committed"
        case events.TransactionAborted(transaction=name):
            return "transactions", f"{name} lingered: aborted"
    text = _of_restarts(event)
    return None if text is None else ("restarts", text)


def _of_restarts(event: events.Event) -> str | None:
    match event:
        case events.AttemptStarted():
            return f"attempt {event.attempt} started"
        case events.CheckpointRestored(checkpoint_id=number):
            return f"checkpoint {number} restored"
        case events.NewInputFound(splits=splits):
            return f"new input found: {splits}"
        case events.RescaleRequested(parallelism=parallelism):
            return f"{parallelism} subtasks wanted"
        case events.AttemptFailed(message=message):
            return f"failed: {message}"
        case events.AttemptFenced(message=message):
            return f"fenced: {message}"
        case events.JobFinished():
            return "finished"
    return None


@dataclass(slots=True)
class Timeline:
    """Fold events in with `note`, from any thread; times are seconds since `began` (Unix seconds)."""

    began: float = field(default_factory=time.time)
    moments: list[Moment] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, event: events.Event) -> None:
        """Fold one event of a run in."""
        with self._lock:
            at = event.time_ms / 1000 - self.began
            if (moment := _lane_and_text(event)) is not None:
                self.moments.append(Moment(at, *moment))

    def say(self, kind: str, text: str) -> None:
        """Note something that the drill did, now."""
        with self._lock:
            self.moments.append(Moment(time.time() - self.began, kind, text))

    def in_order(self) -> tuple[Moment, ...]:
        with self._lock:
            return tuple(sorted(self.moments, key=lambda moment: moment.at))


@dataclass(slots=True)
class RecoveryClock:
    """The milestones of a restored run, in seconds since `began` (Unix seconds), by its first reports of progress.

    A subtask reports as soon as it is restored and open, then every half second, and once more at its end.
    """

    began: float
    parallelism: int
    _restored: dict[int, float] = field(default_factory=dict)
    _first: float | None = None
    _caught_up: dict[int, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, event: events.Event) -> None:
        with self._lock:
            at = event.time_ms / 1000 - self.began
            if isinstance(event, events.SubtaskProgress):
                self._restored.setdefault(event.subtask, at)
                if event.progress.records_in and self._first is None:
                    self._first = at
            elif isinstance(event, events.EndOfInput):
                # One that has nothing left to read says so before it first reports.
                self._restored.setdefault(event.subtask, at)
                self._caught_up.setdefault(event.subtask, at)

    @property
    def restored(self) -> float | None:
        """The time at which the last subtask was restored."""
        return self._last(self._restored)

    @property
    def first_record(self) -> float | None:
        return self._first

    @property
    def caught_up(self) -> float | None:
        """The time at which the last subtask had read its input to the end."""
        return self._last(self._caught_up)

    def _last(self, seen: dict[int, float]) -> float | None:
        with self._lock:
            return max(seen.values()) if len(seen) == self.parallelism else None
