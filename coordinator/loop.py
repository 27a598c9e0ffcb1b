"""The one thread that owns all jobs: everything that happens passes through its queue, in order."""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from coordinator.events import Detached, Said
from coordinator.jobs import Jobs
from twopc.clock import Clock

T = TypeVar("T")

BATCH = 1_000
"""The most items that are taken from the queue before deadlines are looked at."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Post:
    job: str
    event: Detached | Said
    handled: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Call:
    action: Callable[[Jobs], Any]
    answer: Future[Any]


class Loop:
    """Runs `Jobs` on a thread of its own."""

    def __init__(self, jobs: Jobs, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock
        self._queue: queue.SimpleQueue[_Post | _Call | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="coordinator", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Handle what is queued, then end."""
        self._queue.put(None)
        self._thread.join()

    def post(self, job: str, event: Detached | Said, handled: Callable[[], None] = lambda: None) -> None:
        """Hand over an event; nobody waits for what follows. `handled` is called when it has been dealt with."""
        self._queue.put(_Post(job, event, handled))

    def ask(self, action: Callable[[Jobs], T]) -> Future[T]:
        """Run an action on the thread; its result or error comes back in the future."""
        answer: Future[T] = Future()
        self._queue.put(_Call(action, answer))
        return answer

    def _run(self) -> None:
        while True:
            items = self._next_items()
            for job, group in itertools.groupby(items, lambda item: item.job if isinstance(item, _Post) else None):
                if job is None:
                    self._call_all(item for item in group if isinstance(item, _Call))
                else:
                    posts = [item for item in group if isinstance(item, _Post)]
                    events = tuple(post.event for post in posts)
                    self._guarded(lambda job=job, events=events: self._jobs.take(job, events))  # type: ignore[misc]
                    for post in posts:
                        post.handled()
            self._guarded(self._jobs.tick)
            if None in items:
                return

    def _next_items(self) -> list[_Post | _Call | None]:
        """Wait for something to do; return all that there is, nothing if a deadline has come."""
        items: list[_Post | _Call | None] = []
        deadline = self._jobs.deadline()
        timeout = None if deadline is None else max(0, deadline - self._clock.now().monotonic_ms) / 1000
        try:
            items.append(self._queue.get(timeout=timeout))
            while len(items) < BATCH:
                items.append(self._queue.get_nowait())
        except queue.Empty:
            pass
        return items

    def _call_all(self, calls: Iterable[_Call]) -> None:
        for call in calls:
            try:
                call.answer.set_result(call.action(self._jobs))
            except Exception as error:  # noqa: BLE001  it belongs to whoever asked
                call.answer.set_exception(error)

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception:
            log.exception("the coordinator goes on after an error that should not happen")
