"""SIGTERM and Ctrl-C as a wish: the first asks for a last checkpoint, the second Ctrl-C ends at once.

A caller may hand in an event of its own, whose being set is the same wish.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from types import FrameType
from typing import Any, TypeVar

from twopc.driver.host import StoppedEarly
from twopc.termination import Interrupted

log = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_SECONDS = 0.05

HEARD = "stopping: a last checkpoint; Ctrl-C again ends at once"


class StopSignals:
    """While entered, on the main thread, remembers that a stop was asked for; elsewhere signals are left alone."""

    def __init__(self, requested: threading.Event | None = None) -> None:
        self.requests = requested or threading.Event()
        self._before: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        return self.requests.is_set()

    def unless_requested(self, prepare: Callable[[], T]) -> T:
        """Return what `prepare` returns; raise StoppedEarly as soon as a stop is asked for.

        It runs on a thread of its own, because what it waits for (a broker, a coordinator) may never come. What it
        still does after a stop must do no harm.
        """
        preparing: Future[T] | None = None
        while not self.requested:
            preparing = preparing or _beside(prepare)
            try:
                return preparing.result(LOOK_SECONDS)
            except NotYet:
                if preparing.done():
                    raise
        raise StoppedEarly

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.requests.is_set() and number == signal.SIGINT:
            raise Interrupted
        if not self.requests.is_set():
            # On a thread of its own: what was interrupted may be logging, and hold what that needs.
            threading.Thread(target=log.info, args=(HEARD,), name="twopc-signal", daemon=True).start()
        self.requests.set()


def _beside(prepare: Callable[[], T]) -> Future[T]:
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(prepare())
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            outcome.set_exception(error)

    threading.Thread(target=run, name="twopc-preparation", daemon=True).start()
    return outcome
