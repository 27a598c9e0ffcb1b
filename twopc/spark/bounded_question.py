"""A question to Spark's JVM, for which nobody waits for ever: one that stands still, by SIGSTOP or a long collection of
garbage, takes every question and answers none, and py4j knows no time-out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Generic, TypeVar

from twopc.errors import Unavailable

T = TypeVar("T")


class NoAnswer(Unavailable):
    """The JVM has not answered in time. It may still do what it was asked, whenever it goes on."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Spark's JVM has not answered for {seconds:.0f} s (does it stand still, or lack memory?)")


class Question(Generic[T]):
    """One that is under way, on a thread of its own, which keeps no process alive."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._answer: Future[T] = Future()
        self._ask = ask
        threading.Thread(target=self._run, name="twopc-ask-spark", daemon=True).start()

    def answer(self, seconds: float) -> T:
        """Return the answer, or raise what the question raises; NoAnswer if neither comes in time."""
        if not self.ended(seconds):
            raise NoAnswer(seconds)
        return self._answer.result()

    def ended(self, seconds: float) -> bool:
        """Return whether it has come back, in whatever way, after at most so long."""
        wait([self._answer], seconds)
        return self._answer.done()

    def _run(self) -> None:
        try:
            self._answer.set_result(self._ask())
        except BaseException as error:  # noqa: BLE001  whoever waits raises it
            self._answer.set_exception(error)
