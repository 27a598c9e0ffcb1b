"""The one thread that owns all jobs: everything that happens passes through its queue, in order; and how a call waits
for its answer from there.

Invariant: a peer gets the message of an error of ours, made fit to leave; of any other it learns nothing.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import grpc

from coordinator.access import Limits
from coordinator.events import Detached, MessageReceived
from coordinator.jobs import Jobs
from twopc.clock import Clock
from twopc.errors import TwoPhaseCommitError, Unavailable
from twopc.rpc.redaction import redact
from twopc.rpc.status import code_of

T = TypeVar("T")

BATCH = 1_000
"""The most items that are taken from the queue before deadlines are looked at."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Post:
    job: str
    event: Detached | MessageReceived
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
        self._queue: queue.Queue[_Post | _Call | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="coordinator", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Handle what is queued, then end."""
        self._queue.put(None)
        self._thread.join()

    def post(self, job: str, event: Detached | MessageReceived, handled: Callable[[], None] = lambda: None) -> None:
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


class LoopClient:
    """Puts questions to the coordinator's one thread, and waits for the answers as long as it is worth it."""

    def __init__(self, loop: Loop, limits: Limits) -> None:
        self._loop = loop
        self._limits = limits

    def ask(self, action: Callable[[Jobs], T], context: grpc.ServicerContext) -> T:
        """The same as `ask_within`, for a call that may have a deadline of its own."""
        return self.ask_within(context.time_remaining(), action)

    def ask_within(self, seconds: float | None, action: Callable[[Jobs], T]) -> T:
        """Return what the action does, or raise what it raises; Unavailable if that takes too long."""
        patience = self._limits.answer_seconds
        patience = patience if seconds is None else min(patience, seconds)
        try:
            return self._loop.ask(action).result(patience)
        except TimeoutError:
            raise Unavailable("the coordinator is too busy to answer: ask again") from None


def abort_with(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    """End a call with an error: ours by its message, any other without its details, which are nobody's business."""
    if isinstance(error, TwoPhaseCommitError):
        context.abort(code_of(error), redact(str(error)))
    log.error("a call failed with an error that should not happen", exc_info=error)
    context.abort(grpc.StatusCode.INTERNAL, "the coordinator failed; its log says why")
    raise AssertionError("abort raises")
