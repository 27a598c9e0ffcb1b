"""SIGTERM and Ctrl-C as a wish: the first asks for a last checkpoint, the second Ctrl-C ends at once.

A caller may hand in an event of its own, whose being set is the same wish.
"""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType
from typing import Any

from twopc.termination import Interrupted

log = logging.getLogger(__name__)

HEARD = "stopping: a last checkpoint; Ctrl-C again ends at once"


class StopSignals:
    """While entered, on the main thread, remembers that a stop was asked for; elsewhere signals are left alone."""

    def __init__(self, requested: threading.Event | None = None) -> None:
        self._requested = requested or threading.Event()
        self._before: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        return self._requested.is_set()

    def wait(self, seconds: float) -> None:
        """Sleep, but no longer than until a stop is asked for."""
        self._requested.wait(seconds)

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._requested.is_set() and number == signal.SIGINT:
            raise Interrupted
        if not self._requested.is_set():
            # On a thread of its own: what was interrupted may be logging, and hold what that needs.
            threading.Thread(target=log.info, args=(HEARD,), name="twopc-signal", daemon=True).start()
        self._requested.set()
