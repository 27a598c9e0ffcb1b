"""The streams that are open now: of subtasks, and of those who watch. Thread-safe; nobody waits for a slow one."""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from coordinator.events import SessionId
from twopc.errors import TwoPhaseCommitError, Unavailable
from twopc.protocol.job_events import JobEvent
from twopc.protocol.messages import FencedOff, ToSubtask

T = TypeVar("T")

BACKLOG = 10_000
"""A stream that lags this far behind is ended; whoever it was opens it again."""

BATCH = 100
"""The most that goes out together: more could be too large a message."""

log = logging.getLogger(__name__)


class Channel(Generic[T]):
    """What is to go out on one stream, in order; ends after `close`, or with the error given to it."""

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._error: TwoPhaseCommitError | None = None

    def put(self, item: T) -> None:
        if self._items.qsize() < BACKLOG:
            self._items.put(item)
        elif self._error is None:
            self.close(Unavailable("the stream was ended: its reader is too slow"))

    def close(self, error: TwoPhaseCommitError | None = None) -> None:
        self._error = self._error or error
        self._items.put(None)

    def __iter__(self) -> Iterator[T]:
        for items in self.batches():
            yield from items

    def batches(self) -> Iterator[list[T]]:
        """The items in lists: what has come, at once."""
        ended = False
        while not ended:
            items = [self._items.get()]
            while items[-1] is not None and len(items) < BATCH and not self._items.empty():
                items.append(self._items.get())
            ended = items[-1] is None
            if there := [item for item in items if item is not None]:
                yield there
        if self._error is not None:
            raise self._error


class Sessions:
    """Routes messages to subtasks and events to watchers; the `Outlet` of the jobs."""

    def __init__(self, observers: Sequence[Callable[[JobEvent], None]] = ()) -> None:
        self._observers = tuple(observers)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._subtasks: dict[SessionId, Channel[ToSubtask]] = {}
        self._watchers: dict[Channel[JobEvent], str] = {}

    def open(self) -> tuple[SessionId, Channel[ToSubtask]]:
        """Register a subtask's stream."""
        session, channel = SessionId(next(self._numbers)), Channel[ToSubtask]()
        with self._lock:
            self._subtasks[session] = channel
        return session, channel

    def forget(self, session: SessionId) -> None:
        """A subtask's stream is gone."""
        with self._lock:
            self._subtasks.pop(session, None)

    def watch(self, job: str, channel: Channel[JobEvent]) -> None:
        """Let every event of the job go to this channel from now on."""
        with self._lock:
            self._watchers[channel] = job

    def unwatch(self, channel: Channel[JobEvent]) -> None:
        with self._lock:
            self._watchers.pop(channel, None)

    def close(self) -> None:
        """End every stream."""
        with self._lock:
            subtasks, watchers = list(self._subtasks.values()), list(self._watchers)
        for subtask in subtasks:
            subtask.close()
        for watcher in watchers:
            watcher.close()

    def send(self, session: SessionId, message: ToSubtask) -> None:
        with self._lock:
            channel = self._subtasks.get(session)
        if channel is not None:
            channel.put(message)
            if isinstance(message, FencedOff):
                channel.close()

    def hang_up(self, session: SessionId) -> None:
        with self._lock:
            channel = self._subtasks.get(session)
        if channel is not None:
            channel.close()

    def publish(self, event: JobEvent) -> None:
        with self._lock:
            channels = [channel for channel, job in self._watchers.items() if job == event.job]
        for channel in channels:
            channel.put(event)
        for observer in self._observers:
            try:
                observer(event)
            except Exception:
                log.exception("an observer of job %s raised on %s; the coordinator goes on", event.job, event.kind)
