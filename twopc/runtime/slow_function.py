"""Watches the data loop from beside it while user functions run: cuts a batch that lasts, names a record that does.

The loop answers a trigger between two batches only. How long a function takes is known when it has returned, which may
be too late; so a thread looks at the clock, and the loop is charged with nothing for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from twopc.clock import Clock
from twopc.operators import Dataflow

TICK_SECONDS = 0.05
CUT_SECONDS = 0.1
"""How long a batch may last before it is cut."""

SLOW_SECONDS = 1.0
"""How long a function may take for a record before that is told."""


class SlowFunctionWatch:
    """`told` is called every second with what is slow: which step, which record, and for how long until now."""

    def __init__(self, dataflow: Dataflow, clock: Clock, report: Callable[[str], None]) -> None:
        self._dataflow = dataflow
        self._clock = clock
        self._told = report
        self._batch_since: float | None = None
        self._place: str | None = None
        self._place_since = self._told_at = 0.0

    @contextmanager
    def batch(self) -> Iterator[None]:
        """The loop: a batch is in user functions' hands meanwhile."""
        self._batch_since = self._clock.monotonic()
        try:
            yield
        finally:
            self._batch_since = None

    def look(self) -> None:
        """Beside the loop, every now and then."""
        now, since = self._clock.monotonic(), self._batch_since
        if since is None or now - since < CUT_SECONDS:
            self._place = None
            return
        self._dataflow.cut()
        place = self._dataflow.place()
        if place is None or place != self._place:
            self._place, self._place_since, self._told_at = place, now, now
        elif now - self._told_at >= SLOW_SECONDS:
            self._told_at = now
            self._told(f"{place} for {now - self._place_since:.0f} s")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look all the time, on a thread."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(TICK_SECONDS):
                self.look()

        thread = threading.Thread(target=watch, name="twopc-slow-function", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
