"""A client of another system, in coroutines, and the event loop that they run in: its time is the world's.

While calls are in flight everybody else goes on: the process may be killed, and messages come.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.world import World

ANSWERS_IN_SECONDS = (0.03, 0.005, 0.06, 0.001)
"""So a later call often ends before an earlier one."""

TOO_LONG_SECONDS = 5.0


def is_refused(offset: int) -> bool:
    """Whether every call for this record fails."""
    return offset % 6 == 1


def fails_first(offset: int) -> int:
    """How many calls for this record fail before one does not."""
    return 2 if offset % 4 == 1 else 0


def hangs_first(offset: int) -> bool:
    """Whether the first call for this record takes longer than it may."""
    return offset % 6 == 4


def _nothing() -> None:
    """A batch is not cut."""


class Client:
    """Opened once, in one loop. Nobody asks again for a record that was answered."""

    def __init__(self, cut: Callable[[], None] = _nothing) -> None:
        self._cut = cut
        self._calls: Counter[str] = Counter()
        self._answered: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        assert self._loop is None, "it is opened once"
        self._calls, self._answered = Counter(), set()
        self._loop = asyncio.get_running_loop()

    async def __call__(self, value: str) -> str:
        self._cut()
        assert self._loop is asyncio.get_running_loop(), "its connections are of the loop that it was opened in"
        assert value not in self._answered, "a call that has ended is made again"
        offset = int(value.split(":")[1])
        self._calls[value] += 1
        calls = self._calls[value]
        await asyncio.sleep(ANSWERS_IN_SECONDS[offset % len(ANSWERS_IN_SECONDS)])
        if is_refused(offset) or calls <= fails_first(offset):
            raise ConnectionError(value)
        if hangs_first(offset) and calls == 1:
            await asyncio.sleep(TOO_LONG_SECONDS)
        self._answered.add(value)
        return value

    async def close(self) -> None:
        self._loop = None


class SimLoop(asyncio.BaseEventLoop):
    """In the place of the loop's thread: runs a coroutine to its end, and has the world wait where the loop would."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._selector = self
        self._waits_seconds = self._waited_seconds = 0.0

    def __del__(self) -> None:
        """One of a process that was killed is left as it is."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Nobody hears of the calls that were in flight when a process was killed."""

    def time(self) -> float:
        """How long it has waited: a process that stands still lets no call last longer than it may."""
        return self._waited_seconds

    def select(self, timeout: float | None) -> list[Any]:
        """Leave the loop where it has nothing to do until later: nobody waits inside it."""
        assert timeout is not None, "something is due in a loop that runs"
        if timeout > 0:
            self._waits_seconds = timeout
            self.stop()
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no sockets."""

    def run(self, coroutine: Coroutine[Any, Any, Any], timeout: float = math.inf) -> Any:
        """As `twopc.operators.async_map._LoopThread` does it."""
        task = self.create_task(coroutine)
        task.add_done_callback(lambda _: self.stop())
        while not task.done():
            self.run_forever()
            if self._waits_seconds and not task.done():
                self._world.sleep(self._waits_seconds)
                self._waited_seconds += self._waits_seconds
            self._waits_seconds = 0.0
        return task.result()

    def end(self) -> bool:
        """Nothing of it is left."""
        self.close()
        return True
