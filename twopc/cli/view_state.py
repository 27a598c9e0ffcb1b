"""What the live view of a run knows, derived from the job's events alone."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from twopc.cli.histogram import Histogram
from twopc.protocol.job_events import JobEvent, JobEventKind

CHECKPOINTS_SHOWN = 8
NOTES_SHOWN = 8
RATE_WINDOW_MS = 3_000

NOTED = {
    JobEventKind.STARTING: "{event.message}",
    JobEventKind.WAITING: "{event.message}",
    JobEventKind.ATTEMPT_STARTED: "attempt {event.attempt} started",
    JobEventKind.RESTORED: "checkpoint {event.checkpoint_id} restored: reading on from {event.message}",
    JobEventKind.RESUMED: "transaction {event.message} resumed: committed",
    JobEventKind.LINGERING_ABORTED: "lingering transaction {event.message} aborted",
    JobEventKind.FAILED: "failed: {event.message}",
    JobEventKind.FENCED: "fenced: {event.message}",
    JobEventKind.FINISHED: "finished",
}

_OF_CHECKPOINTS = frozenset(
    {
        JobEventKind.TRIGGERED,
        JobEventKind.ACKNOWLEDGED,
        JobEventKind.COMPLETED,
        JobEventKind.COMMITTED,
        JobEventKind.CONFIRMED,
        JobEventKind.ABORTED,
    }
)


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

    @property
    def records_in(self) -> int:
        return sum(line.records_in for line in self.subtasks.values())

    @property
    def records_out(self) -> int:
        return sum(line.records_out for line in self.subtasks.values())

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

    def note(self, event: JobEvent) -> None:
        """Fold one event in."""
        if event.kind is JobEventKind.ATTEMPT_STARTED:
            self.attempt = event.attempt
            self.subtasks.clear()
            self._samples.clear()
        if event.kind in NOTED:
            self.notes.append((event.time_ms, NOTED[event.kind].format(event=event)))
        if event.kind is JobEventKind.ATTACHED:
            self.subtasks.setdefault(event.subtask, SubtaskLine()).pid = event.pid
        if event.kind is JobEventKind.PROGRESS:
            self._note_progress(event)
        elif event.checkpoint_id:
            self._note_checkpoint(event)

    def _note_progress(self, event: JobEvent) -> None:
        if event.progress is None:
            return
        line = self.subtasks.setdefault(event.subtask, SubtaskLine())
        line.records_in = event.progress.records_in
        line.records_out = event.progress.records_out
        line.lag = event.progress.lag
        line.open_transaction = event.progress.open_transaction or ""
        line.pending_transactions = tuple(event.progress.pending_transactions)
        self._samples.append((event.time_ms, self.records_in))
        while self._samples and event.time_ms - self._samples[0][0] > RATE_WINDOW_MS:
            self._samples.popleft()

    def _note_checkpoint(self, event: JobEvent) -> None:
        if event.kind not in _OF_CHECKPOINTS:
            return
        line = self.checkpoints.setdefault(event.checkpoint_id, CheckpointLine(event.checkpoint_id))
        match event.kind:
            case JobEventKind.TRIGGERED:
                line.final = event.final
            case JobEventKind.ACKNOWLEDGED:
                line.acknowledged.add(event.subtask)
                line.phase = f"acknowledged {len(line.acknowledged)}/{len(self.subtasks)}"
                line.pause_ms = max(line.pause_ms, event.pause_ms)
                self.pauses.add(event.pause_ms)
            case JobEventKind.COMPLETED:
                line.phase = "completed"
                line.duration_ms = event.duration_ms
                self.completed += 1
            case JobEventKind.COMMITTED:
                line.committed.add(event.subtask)
                line.phase = f"committed {len(line.committed)}/{len(self.subtasks)}"
            case JobEventKind.CONFIRMED:
                line.phase = "committed"
            case JobEventKind.ABORTED:
                line.phase = f"aborted: {event.message}"
        for old in sorted(self.checkpoints)[:-CHECKPOINTS_SHOWN]:
            del self.checkpoints[old]
