"""The streams that are open now: of subtasks, and of those who watch. Thread-safe; nobody waits for a slow one.

A watcher gets the status of its job first, then every event: over gRPC, or inside this process. A driver that embeds
the coordinator takes the second way: over gRPC each event costs both sides of a connection to itself.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from coordinator.access import Limits
from coordinator.events import SessionId
from coordinator.jobs import Jobs
from coordinator.loop import Loop, LoopClient
from twopc import events
from twopc.errors import TwoPhaseCommitError, Unavailable
from twopc.protocol.messages import FencedOff, ToSubtask

T = TypeVar("T")

BACKLOG = 10_000
"""A stream that lags this far behind is ended; its client opens it again."""

BATCH = 100
"""The most that goes out together: more could be too large a message."""

log = logging.getLogger(__name__)


class Channel(Generic[T]):
    """The messages that go out on one stream, in order; ends after `close`, or with the error given to it."""

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
    """Routes messages to subtasks and events to watchers; the `DecisionSink` of the jobs."""

    def __init__(self, observers: Sequence[Callable[[events.CoordinatorEvent], None]] = ()) -> None:
        self._observers = tuple(observers)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._subtasks: dict[SessionId, Channel[ToSubtask]] = {}
        self._watchers: dict[Channel[events.CoordinatorEvent], str] = {}

    def observe(self, observer: Callable[[events.CoordinatorEvent], None]) -> None:
        """Call it with every event of every job from now on, on the coordinator's own thread."""
        self._observers = (*self._observers, observer)

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

    def watch(self, job: str, channel: Channel[events.CoordinatorEvent]) -> None:
        """Let every event of the job go to this channel from now on."""
        with self._lock:
            self._watchers[channel] = job

    def unwatch(self, channel: Channel[events.CoordinatorEvent]) -> None:
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

    def publish(self, event: events.CoordinatorEvent) -> None:
        with self._lock:
            channels = [channel for channel, job in self._watchers.items() if job == event.job]
        for channel in channels:
            channel.put(event)
        for observer in self._observers:
            try:
                observer(event)
            except Exception:
                log.exception("an observer of job %s raised on %s; the coordinator goes on", event.job, event.name)


def subscription(job: str, channel: Channel[events.CoordinatorEvent], sessions: Sessions) -> Callable[[Jobs], None]:
    """Return what the coordinator's thread does so that this channel gets the status of a job, and what follows it."""

    def subscribe(jobs: Jobs) -> None:
        for event in jobs.status(job):
            channel.put(event)
        sessions.watch(job, channel)

    return subscribe


class EventStream:
    """Watches from inside this process, as `twopc.rpc.job_client.JobClient` does from outside. Thread-safe."""

    def __init__(self, loop: Loop, sessions: Sessions, limits: Limits) -> None:
        self._client = LoopClient(loop, limits)
        self._sessions = sessions
        self._lock = threading.Lock()
        self._channels: set[Channel[events.CoordinatorEvent]] = set()
        self._stopped = False

    def watch(self, job: str) -> Iterator[events.CoordinatorEvent]:
        """Yield every event of a job from now on, its status first, then how its attempt ended if it has.

        Ends when `stop_watching` is called, and when the coordinator does.
        """
        channel = Channel[events.CoordinatorEvent]()
        with self._lock:
            self._channels.add(channel)
            if self._stopped:
                channel.close()
        try:
            self._client.ask_within(None, subscription(job, channel, self._sessions))
            yield from channel
        finally:
            self._sessions.unwatch(channel)
            with self._lock:
                self._channels.discard(channel)

    def stop_watching(self) -> None:
        """End every `watch`, for good."""
        with self._lock:
            self._stopped = True
            for channel in self._channels:
                channel.close()
