"""What a subtask was told and has not taken yet. A trigger that was said ahead waits until it is due. Pure.

Others pass it meanwhile. It is dropped when its checkpoint is aborted, and when another is triggered: it is the only
one in flight, so that one has taken its place. Used under the link's lock.
"""

from __future__ import annotations

from collections import deque

from twopc.protocol.messages import Abort, ToSubtask, Trigger


class Inbox:
    """Messages in the order in which they may be taken. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._messages: deque[ToSubtask] = deque()
        self._ahead: Trigger | None = None
        self._due = float("inf")

    def put(self, message: ToSubtask, now: float) -> None:
        """Take in a message that was heard now."""
        match message:
            case Trigger():
                self._wait_for(message if message.after_ms else None, now)
            case Abort() if self._ahead is not None and self._ahead.checkpoint_id == message.checkpoint_id:
                self._wait_for(None, now)
            case _:
                pass
        if message is not self._ahead:
            self._messages.append(message)

    def take(self, now: float) -> list[ToSubtask]:
        """Return what may be taken now, and keep it no longer."""
        if self._ahead is not None and now >= self._due:
            self._messages.append(self._ahead)
            self._wait_for(None, now)
        taken = list(self._messages)
        self._messages.clear()
        return taken

    def empty_for(self, now: float) -> float:
        """Return for how long from now there is nothing to take, if nothing is put in; in seconds, 0 for not at all."""
        return 0.0 if self._messages else max(0.0, self._due - now)

    def _wait_for(self, ahead: Trigger | None, now: float) -> None:
        self._ahead = ahead
        self._due = float("inf") if ahead is None else now + ahead.after_ms / 1000
