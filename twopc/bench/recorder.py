"""Records the speed of a run from its events: records over time, and the cost of each checkpoint."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from twopc import events


@dataclass(slots=True)
class Recorder:
    """Fold events in with `note`, from any thread. Times are Unix seconds, durations milliseconds."""

    started: float | None = None
    progress: list[tuple[float, int]] = field(default_factory=list)
    checkpoints: list[tuple[float, float]] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    aborted: int = 0
    restarts: int = -1
    _records: dict[int, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, event: events.Event) -> None:
        """Fold one event in."""
        with self._lock:
            at = event.time_ms / 1000
            match event:
                case events.AttemptStarted():
                    self.restarts += 1
                    self._records.clear()
                case events.SubtaskProgress():
                    self._records[event.subtask] = event.progress.records_in
                    total = sum(self._records.values())
                    if total and self.started is None:
                        self.started = at
                    self.progress.append((at, total))
                case events.CheckpointCompleted():
                    self.checkpoints.append((at, event.duration_ms))
                case events.CheckpointAcknowledged():
                    self.pauses.append(event.pause_ms)
                case events.CheckpointAborted():
                    self.aborted += 1
                case _:
                    pass

    @property
    def records(self) -> int:
        """The number of records that the current attempt has read."""
        with self._lock:
            return sum(self._records.values())

    def moment(self, records: float) -> float | None:
        """Return when so many records had been read, between two reports by proportion; None if never."""
        before = None
        for at, total in self.progress:
            if total >= records:
                if before is None or total == before[1]:
                    return at
                return before[0] + (records - before[1]) / (total - before[1]) * (at - before[0])
            before = (at, total)
        return None

    def rates(self) -> list[tuple[float, float]]:
        """Return (seconds since the first record, records a second) over the run, in steps of about a second."""
        steps: list[tuple[float, float]] = []
        if self.started is None:
            return steps
        last_at, last = self.progress[0]
        for at, total in self.progress:
            if at - last_at >= 1.0 and total >= last:
                steps.append((at - self.started, (total - last) / (at - last_at)))
                last_at, last = at, total
        return steps


def percentile(values: list[float], share: float) -> float | None:
    """Return the value below which this share of the values lies; None for no values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
