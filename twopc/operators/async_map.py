"""map_async: a coroutine function on each value, several records at a time, the results in the order of the records.

- Nothing is in flight between two batches, so a checkpoint waits for what is in flight, and restores none of it.
- Of a batch that is cut no further call is begun; what is in flight ends, and the rest of the batch waits.
- A call that fails is made again as often as `retries` says. Behind a record that has failed no call is begun; those in
  flight end, and what they return counts where the job goes on behind it: no call that has ended is made again.
- The coroutines run in an event loop of the operator's own, on a thread, so that a client's connections stay alive
  between batches, a signal ends the process although a function blocks, and a notebook may have a loop of its own.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import math
import random
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import wait
from threading import Thread
from typing import Any

from twopc.column import Over, failure_at, span
from twopc.operators.async_step import MapAsync
from twopc.operators.instance import OnePortInstance
from twopc.operators.records import as_batch, checked, kept
from twopc.operators.result import Result
from twopc.record import Batch
from twopc.termination import TERMINATION

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
"""Between a call that failed and the next; twice as long each time, and up to half less by chance."""

CLOSE_SECONDS = 5.0
"""How long calls in flight and the function's own close may take at the end, and then what tasks are left."""

SIGNAL_SECONDS = 0.5
"""How late a signal may be noticed that comes while the wait for the loop begins."""

_END = object()

log = logging.getLogger(__name__)


class AsyncMap(OnePortInstance):
    """One map_async on one subtask."""

    def __init__(self, step: MapAsync) -> None:
        self.concurrency = step.concurrency
        self._step = step
        self._by_record = step.by_record
        # Subtasks of one process have each a loop, and what a function opens belongs to one.
        opens = hasattr(step.function, "open") or hasattr(step.function, "close")
        self._function = copy.copy(step.function) if opens else step.function
        self._timeout = None if step.timeout_ms is None else step.timeout_ms / 1000
        self._thread: _LoopThread | None = None
        self._opened = False
        self._calls: _Calls | None = None
        self._ahead: list[Any] = []

    def process(self, batch: Batch, over: Over) -> Result:
        """Replace each value, or record, by what the function returns, up to where `over` stops."""
        thread = self._thread or self._open(batch)
        column = batch.records() if self._by_record else batch.values
        assert len(self._ahead) <= len(column), "who goes on behind a record that has failed does so with the next"
        self._calls = calls = _Calls(self._call, self._ahead, over(column[len(self._ahead) :]))
        thread.run(calls.make(min(self.concurrency, len(batch))))
        self._calls, self._ahead = None, []
        results, cause = calls.results, None
        if (failed := next(filter(_has_failed, results), None)) is not None:
            taken, cause = results.index(failed), failed.cause
            results, self._ahead = results[:taken], results[taken + 1 :]
        if self._by_record:
            return Result(len(results), as_batch(list(batch.rows[: len(results)]), results), cause)
        return Result(len(results), batch.first(len(results)).with_values(results), cause)

    def index(self, otherwise: int) -> int:
        calls = self._calls
        return otherwise if calls is None else min(calls.in_flight.copy(), default=otherwise)

    def close(self) -> None:
        if self._thread is None:
            return
        problem = None
        try:
            self._thread.run(self._closed(), CLOSE_SECONDS)
        except TERMINATION:
            raise
        except BaseException as error:  # noqa: BLE001 - the attempt is over, and has its own reason
            problem = repr(error)
        if not self._thread.end():
            problem = "what it has begun does not end"
        if problem is not None:
            log.warning("closing %s: %s", self._step, problem)

    def _open(self, batch: Batch) -> _LoopThread:
        self._thread = _LoopThread()
        if hasattr(self._function, "open"):
            try:
                self._thread.run(self._retried(self._function.open))
            except TERMINATION:
                raise
            except BaseException as error:
                raise failure_at(span(batch.rows), f"open() of {self._step}", error) from error
        self._opened = True
        return self._thread

    async def _closed(self) -> None:
        if self._calls is not None:
            await self._calls.cancelled()
        if self._opened and hasattr(self._function, "close"):
            await self._function.close()

    async def _call(self, element: Any) -> Any:
        result = await self._retried(lambda: self._function(element))
        if not self._by_record:
            return result
        return kept(element.key, checked(result)) if self._step.keeps_key else checked(result)

    async def _retried(self, function: Callable[[], Awaitable[Any]]) -> Any:
        pause = FIRST_PAUSE_SECONDS
        for left in range(self._step.retries, -1, -1):
            try:
                return await self._in_time(function)
            except Exception:
                if not left:
                    raise
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        raise AssertionError("the last call returns or raises")

    async def _in_time(self, function: Callable[[], Awaitable[Any]]) -> Any:
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                return await function()
        except TimeoutError as error:
            if limit.expired() and not str(error):
                raise TimeoutError(f"no result within {self._timeout:g} s") from error
            raise


class _Failed:
    """Stands for the result of a call that has failed."""

    def __init__(self, cause: BaseException) -> None:
        self.cause = cause


def _has_failed(result: Any) -> bool:
    return type(result) is _Failed


class _Calls:
    """The calls for one batch: `results` of the records that were taken, in their order, the first known before."""

    def __init__(self, call: Callable[[Any], Awaitable[Any]], known: Sequence[Any], rest: Iterator[Any]) -> None:
        self._call = call
        self._rest = rest
        self._failed = any(map(_has_failed, known))
        self.results: list[Any] = [*known]
        self.in_flight: dict[int, asyncio.Task[Any]] = {}

    async def make(self, concurrency: int) -> None:
        """Make a call for each element, so many at a time; return when all that were begun have ended."""
        workers = [asyncio.create_task(self._work()) for _ in range(concurrency)]
        await asyncio.gather(*workers, return_exceptions=True)

    async def cancelled(self) -> None:
        """Begin no further call, cancel those in flight, and return when they have ended."""
        self._rest = iter(())
        tasks = list(self.in_flight.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while not self._failed and (element := next(self._rest, _END)) is not _END:
            index = len(self.results)
            self.results.append(None)
            self.in_flight[index] = task
            try:
                self.results[index] = await self._call(element)
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is an error of this record
                self.results[index] = _Failed(error)
                self._failed = True
            finally:
                del self.in_flight[index]


class _LoopThread:
    """A thread that runs an event loop, until `end` or until nobody holds it any more."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stop = weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)
        self._stop.atexit = False
        self._thread = Thread(target=_turn, args=(self._loop,), name="twopc-async", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Any], timeout: float = math.inf) -> Any:
        """Return what the coroutine returns, for another thread."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        deadline = time.monotonic() + timeout
        while not wait((future,), max(0.0, min(SIGNAL_SECONDS, deadline - time.monotonic()))).done:
            if time.monotonic() >= deadline:
                future.cancel()
                raise TimeoutError(f"no end within {timeout:g} s")
        return future.result()

    def end(self) -> bool:
        """End the thread; return whether it has ended. One in which a function blocks is left to the process's end."""
        self._stop()
        self._thread.join(CLOSE_SECONDS)
        return not self._thread.is_alive()


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        try:
            loop.run_forever()
        except BaseException:  # noqa: BLE001, S112 - a SystemExit of a task reaches whoever awaits it as well
            continue
        break
    try:
        loop.run_until_complete(_tidied())
    finally:
        loop.close()


async def _tidied() -> None:
    """Cancel the tasks that are left, and end what else a loop holds."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
