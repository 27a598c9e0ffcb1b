"""The traces of the last checkpoints that this process has heard of."""

from __future__ import annotations

import threading
from collections import deque

from twopc import events
from twopc.tracing.checkpoints import CheckpointTraces
from twopc.ui.timeline import Row, row_of_trace

KEPT = 50
"""The checkpoints of a job of which the trace is kept."""


class Traces:
    """Any thread may `note`, and any read."""

    def __init__(self) -> None:
        self._made = CheckpointTraces()
        self._kept: dict[str, deque[Row]] = {}
        self._lock = threading.Lock()

    def note(self, event: events.Event) -> None:
        """Take in what happened."""
        if isinstance(event, events.SubtaskProgress):
            return
        with self._lock:
            for trace in self._made.note(event):
                self._kept.setdefault(event.job, deque(maxlen=KEPT)).append(row_of_trace(trace))

    def of(self, job: str) -> list[Row]:
        """Return those of a job, oldest first."""
        with self._lock:
            return list(self._kept.get(job, ()))
