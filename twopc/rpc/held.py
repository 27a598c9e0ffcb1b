"""The word of a commit, which waits for company: a message of its own costs both sides as much as an acknowledgement.

It waits only where checkpoints are so frequent that there is soon something else to say. Where they are not, somebody
may look for the commit of a savepoint. The end of the job waits for it, so nothing is held after the trigger of a final
checkpoint.
"""

from __future__ import annotations

import time

from twopc.protocol.attempts import FREQUENT_MS
from twopc.protocol.messages import Committed, ToCoordinator, ToSubtask, Trigger


def held_for(interval_ms: int) -> float:
    """Return how many seconds the word may wait, where checkpoints are so far apart; 0 for not at all."""
    return interval_ms / 1000 if interval_ms <= FREQUENT_MS else 0.0


class Held:
    """What a link holds back, for at most so many seconds. Used under the link's lock."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._committed: Committed | None = None
        self._until = 0.0
        self._is_ending = False

    def heard(self, message: ToSubtask) -> None:
        self._is_ending = self._is_ending or (isinstance(message, Trigger) and message.final)

    def hold(self, message: ToCoordinator) -> bool:
        """Keep the message, if it can wait; a later one says what the one before did."""
        if not isinstance(message, Committed) or self._is_ending or not self._seconds:
            return False
        if self._committed is None:
            self._until = time.monotonic() + self._seconds
        self._committed = message
        return True

    def take(self) -> Committed | None:
        """Return what is held, and hold it no longer."""
        held, self._committed = self._committed, None
        return held

    @property
    def is_due(self) -> bool:
        """Whether it has waited long enough."""
        return self._committed is not None and time.monotonic() >= self._until
