"""The control link between a subtask and the coordinator, as the subtask sees it."""

from __future__ import annotations

from collections import deque
from threading import Condition
from typing import Protocol

from twopc.protocol.messages import FencedOff, Finish, ToCoordinator, ToSubtask, Trigger


class MessageTooLarge(Exception):
    """A message takes more bytes than one may have; nothing of it was sent."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"{size:,} bytes, and a message holds {limit:,}")


def ends_reading(message: ToSubtask) -> bool:
    """Whether nothing is read any more once a subtask has received this."""
    return isinstance(message, Finish | FencedOff) or (isinstance(message, Trigger) and message.final)


class Link(Protocol):
    """Messages out and in, in order; thread-safe.

    A lost connection is the link's own business: it dials again, and repeats what may not have arrived. So a message
    may reach either side twice.
    """

    def send(self, message: ToCoordinator) -> None:
        """Send soon; never blocks for long, never raises for a lost connection.

        Raises MessageTooLarge for what would break every stream on which it is repeated.
        """
        ...

    def receive(self, timeout: float) -> list[ToSubtask]:
        """Return what has come, at once if there is something, else after at most `timeout` seconds."""
        ...

    def close(self) -> None:
        """Send what is waiting, for a bounded time, and hang up."""
        ...


class MemoryLink:
    """A link within one process: the test plays the coordinator."""

    def __init__(self) -> None:
        self.sent: list[ToCoordinator] = []
        self.closed = False
        self.too_large: type[ToCoordinator] | None = None
        self._inbox: deque[ToSubtask] = deque()
        self._arrived = Condition()

    def deliver(self, message: ToSubtask) -> None:
        """Let the subtask receive this message."""
        with self._arrived:
            self._inbox.append(message)
            self._arrived.notify_all()

    def send(self, message: ToCoordinator) -> None:
        if self.too_large is not None and isinstance(message, self.too_large):
            raise MessageTooLarge(2, 1)
        with self._arrived:
            self.sent.append(message)
            self._arrived.notify_all()

    def receive(self, timeout: float) -> list[ToSubtask]:
        with self._arrived:
            if not self._inbox and timeout > 0:
                self._arrived.wait(timeout)
            messages = list(self._inbox)
            self._inbox.clear()
        return messages

    def close(self) -> None:
        self.closed = True
