"""A call that may not come back in the time that it was given."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")


class Overdue(Exception):
    """A call has not come back in time and may be under way for ever: nothing that it uses can be used again."""


def call_within(seconds: float, call: Callable[[], T]) -> T:
    """Return what the call returns, or raise what it raises; raise Overdue if it does neither in time.

    It is made on a thread of its own. Where it is overdue the thread is left behind; it keeps no process alive.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001  whoever waits raises it
            answer.set_exception(error)

    threading.Thread(target=run, name="twopc-bounded-call", daemon=True).start()
    wait([answer], seconds)
    if not answer.done():
        raise Overdue
    return answer.result()
