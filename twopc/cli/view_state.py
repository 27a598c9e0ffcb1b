"""The state of a run's live view, derived from the job's events alone."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import assert_never

from twopc import events
from twopc.cli.histogram import Histogram
from twopc.protocol.figures import Figures, updated
from twopc.protocol.record_errors import RecordErrorCount, counts_in

CHECKPOINTS_SHOWN = 8
NOTES_SHOWN = 8
RATE_WINDOW_MS = 3_000
SLOW_AGAIN_MS = 30_000
"""How long a function that does not return goes untold of after it was told of."""

_OfCheckpoint = (
    events.CheckpointTriggered
    | events.CheckpointAcknowledged
    | events.CheckpointCompleted
    | events.CheckpointAborted
    | events.CheckpointCommitted
    | events.CheckpointConfirmed
)


def note_of(event: events.Event) -> str | None:
    """Return what people are told of an event at once; None of what only moves the figures.

    Why an attempt failed the driver says itself, with what follows from it.
    """
    match event:
        case events.RecordFailed(error=error):
            return f"went wrong: {error.message}"
        case events.RescaleRequested(parallelism=parallelism):
            return f"{parallelism} subtasks are wanted, from the next checkpoint on"
        case events.RescaleRefused(message=message):
            return f"another parallelism was refused: {message}"
        case events.AttemptFenced(message=message):
            return f"fenced: {message}"
        case events.JobFinished():
            return "finished"
    return _note_of_driver(event) if isinstance(event, events.DriverEvent) else None


def _note_of_driver(event: events.DriverEvent) -> str | None:
    match event:
        case events.HostStarting(message=message) | events.WaitingForHost(message=message):
            return message
        case events.CheckpointRestored(checkpoint_id=number, starts=starts):
            return f"checkpoint {number} restored: reading on from {starts}"
        case events.NewInputFound(splits=splits):
            return f"new input: {splits}; read when the next checkpoint has completed"
        case events.NewInputRefused() | events.InputHidden():
            # The log says it, whoever runs the job.
            return None
        case events.TransactionResumed(transaction=name):
            return f"transaction {name} resumed: committed"
        case events.TransactionAborted(transaction=name):
            return f"lingering transaction {name} aborted"
        case _:
            assert_never(event)


@dataclass(slots=True)
class CheckpointLine:
    """One checkpoint as the view shows it. Durations are milliseconds."""

    checkpoint_id: int
    phase: str = "triggered"
    acknowledged: set[int] = field(default_factory=set)
    committed: set[int] = field(default_factory=set)
    duration_ms: float | None = None
    pause_ms: float = 0.0
    final: bool = False


@dataclass(slots=True)
class SubtaskLine:
    """One subtask as the view shows it."""

    pid: int = 0
    records_in: int = 0
    records_out: int = 0
    lag: int | None = None
    open_transaction: str = ""
    pending_transactions: tuple[str, ...] = ()
    figures: Figures | None = None
    slow_told_ms: int | None = None


@dataclass(slots=True)
class RunView:
    """Fold events in with `note`; read the fields."""

    job: str
    attempt: int = 0
    subtasks: dict[int, SubtaskLine] = field(default_factory=dict)
    checkpoints: dict[int, CheckpointLine] = field(default_factory=dict)
    notes: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=NOTES_SHOWN))
    completed: int = 0
    pauses: Histogram = field(default_factory=Histogram)
    _samples: deque[tuple[int, int]] = field(default_factory=deque)
    _unannounced: events.AttemptStarted | None = None

    @property
    def has_figures(self) -> bool:
        """Whether a subtask of the attempt has said how far it is."""
        return bool(self._samples)

    @property
    def records_in(self) -> int:
        return sum(line.records_in for line in self.subtasks.values())

    @property
    def records_out(self) -> int:
        return sum(line.records_out for line in self.subtasks.values())

    @property
    def record_errors(self) -> tuple[RecordErrorCount, ...]:
        """The records that went wrong while the job went on, by source and operator."""
        return counts_in(line.figures for line in self.subtasks.values())

    @property
    def lag(self) -> int | None:
        """Records left to read; None while any subtask doesn't know."""
        lags = [line.lag for line in self.subtasks.values()]
        known = [lag for lag in lags if lag is not None]
        return sum(known) if known and len(known) == len(lags) else None

    @property
    def rate(self) -> float:
        """Records read a second, over the last three seconds."""
        if len(self._samples) < 2:
            return 0.0
        (first_ms, first), (last_ms, last) = self._samples[0], self._samples[-1]
        return max(0, last - first) * 1000 / max(1, last_ms - first_ms)

    def note(self, event: events.Event) -> list[tuple[events.Event, str]]:
        """Fold one event in; return what people are told now, and of which event.

        The start of an attempt is told when something comes of it. Nothing does of one that is refused, or that only
        cleans up behind the last.
        """
        notes = self._notes_of(event)
        self.notes += [(each.time_ms, text) for each, text in notes]
        self._fold(event)
        return notes

    def _notes_of(self, event: events.Event) -> list[tuple[events.Event, str]]:
        notes: list[tuple[events.Event, str]] = []
        started, self._unannounced = self._unannounced, None
        if isinstance(event, events.AttemptStarted):
            self._unannounced = event
        elif started is not None and not isinstance(event, events.AttemptFailed):
            notes.append((started, f"attempt {started.attempt} started"))
        note = self._slow_note(event) if isinstance(event, events.SubtaskProgress) else note_of(event)
        if note is not None:
            notes.append((event, note))
        return notes

    def _slow_note(self, event: events.SubtaskProgress) -> str | None:
        line, slow = self.subtasks.setdefault(event.subtask, SubtaskLine()), event.progress.slow
        if not slow:
            line.slow_told_ms = None
            return None
        if line.slow_told_ms is not None and event.time_ms - line.slow_told_ms < SLOW_AGAIN_MS:
            return None
        line.slow_told_ms = event.time_ms
        return f"subtask {event.subtask} is in {slow}"

    def _fold(self, event: events.Event) -> None:
        match event:
            case events.AttemptStarted():
                self.attempt = event.attempt
                self.subtasks.clear()
                self._samples.clear()
            case events.SubtaskAttached():
                self.subtasks.setdefault(event.subtask, SubtaskLine()).pid = event.pid
            case events.SubtaskProgress():
                self._note_progress(event)
            case (
                events.CheckpointEvent()
                | events.CheckpointAcknowledged()
                | events.CheckpointCommitted()
                | events.CheckpointConfirmed()
            ) if event.checkpoint_id:
                self._note_checkpoint(event)

    def _note_progress(self, event: events.SubtaskProgress) -> None:
        line, progress = self.subtasks.setdefault(event.subtask, SubtaskLine()), event.progress
        line.records_in = progress.records_in
        line.records_out = progress.records_out
        line.lag = progress.lag
        line.open_transaction = progress.open_transaction or ""
        line.pending_transactions = progress.pending_transactions
        line.figures = updated(line.figures, progress.figures)
        self._samples.append((event.time_ms, self.records_in))
        while self._samples and event.time_ms - self._samples[0][0] > RATE_WINDOW_MS:
            self._samples.popleft()

    def _note_checkpoint(self, event: _OfCheckpoint) -> None:
        line = self.checkpoints.setdefault(event.checkpoint_id, CheckpointLine(event.checkpoint_id))
        match event:
            case events.CheckpointTriggered():
                line.final = event.final
            case events.CheckpointAcknowledged():
                line.acknowledged.add(event.subtask)
                line.phase = f"acknowledged {len(line.acknowledged)}/{len(self.subtasks)}"
                line.pause_ms = max(line.pause_ms, event.pause_ms)
                self.pauses.add(event.pause_ms)
            case events.CheckpointCompleted():
                line.phase = "completed"
                line.duration_ms = event.duration_ms
                self.completed += 1
            case events.CheckpointCommitted():
                line.committed.add(event.subtask)
                line.phase = f"committed {len(line.committed)}/{len(self.subtasks)}"
            case events.CheckpointConfirmed():
                line.phase = "committed"
            case events.CheckpointAborted():
                line.phase = f"aborted: {event.message}"
            case _:
                assert_never(event)
        for old in sorted(self.checkpoints)[:-CHECKPOINTS_SHOWN]:
            del self.checkpoints[old]
