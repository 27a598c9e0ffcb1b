"""Who watches a job: its status first, then every event; as calls over gRPC, and from inside this process.

A driver that embeds the coordinator follows its events here: over gRPC each costs both sides of a connection to itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from coordinator.answering import Asking
from coordinator.jobs import Jobs
from coordinator.limits import Limits
from coordinator.loop import Loop
from coordinator.sessions import Channel, Sessions
from twopc.protocol.job_events import JobEvent


def subscription(job: str, channel: Channel[JobEvent], sessions: Sessions) -> Callable[[Jobs], None]:
    """Return what the coordinator's thread does so that this channel gets the status of a job, and what follows it."""

    def subscribe(jobs: Jobs) -> None:
        for event in jobs.status(job):
            channel.put(event)
        sessions.watch(job, channel)

    return subscribe


class Watching:
    """Watches from inside this process, as `twopc.rpc.job_client.JobClient` does from outside. Thread-safe."""

    def __init__(self, loop: Loop, sessions: Sessions, limits: Limits) -> None:
        self._asking = Asking(loop, limits)
        self._sessions = sessions
        self._lock = threading.Lock()
        self._channels: set[Channel[JobEvent]] = set()
        self._stopped = False

    def watch(self, job: str) -> Iterator[JobEvent]:
        """Yield every event of a job from now on, its status first, then how its attempt ended if it has.

        Ends when `stop_watching` is called, and when the coordinator does.
        """
        channel = Channel[JobEvent]()
        with self._lock:
            self._channels.add(channel)
            if self._stopped:
                channel.close()
        try:
            self._asking.ask_within(None, subscription(job, channel, self._sessions))
            for events in channel.batches():
                yield from events
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
