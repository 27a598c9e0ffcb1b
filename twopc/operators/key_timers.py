"""The timers of the key in hand: what a call sets and deletes counts when it has returned."""

from __future__ import annotations

from typing import Any

from twopc.operators.process_step import Process
from twopc.operators.time_queue import TIMES, TimeQueue
from twopc.processor import Context
from twopc.state.whole_key import left_out


class KeyTimers:
    """The timers that a context sets and deletes."""

    def __init__(self, step: Process, context: Context) -> None:
        self._step = step
        self._context = context
        self._queue: TimeQueue | None = None
        self._key = b""
        self._firing: int | None = None
        self._changes: list[tuple[int, bytes | None]] = []
        """The time of each, and what the form of its key leaves out; None to delete it."""

    def enter(self, queue: TimeQueue | None, key: bytes, firing: int | None) -> None:
        """A function is called for this key; `firing` is the time of the timer that it is called for."""
        self._queue, self._key, self._firing = queue, key, firing

    def set(self, at: int) -> None:
        if self._firing is not None and at <= self._firing:
            raise ValueError(f"on_timer of time {self._firing} sets a timer for {at}, and would be called for ever")
        self._change(at, left_out(self._context.key))

    def delete(self, at: int) -> None:
        self._change(at, None)

    def keep(self) -> None:
        """The function has returned: bring its changes to the queue, in their order."""
        if not self._changes or self._queue is None:
            return
        for at, left in self._changes:
            if left is None:
                self._queue.remove(at, self._key)
            else:
                self._queue.add(at, self._key, left)
        self._changes.clear()

    def drop(self) -> None:
        """The function has failed: it has changed nothing."""
        self._changes.clear()

    def _change(self, at: Any, left: bytes | None) -> None:
        if self._queue is None:
            raise TypeError(f"{self._step} has timers, and its processor has no function on_timer(self, at, context)")
        if type(at) is not int or at not in TIMES:
            raise TypeError(f"the time of a timer must be an integer, Unix milliseconds, not {at!r}")
        self._changes.append((at, left))
