"""The coordinator's events of a running job, followed on a thread of their own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from twopc import events
from twopc.driver.effects import Tell
from twopc.errors import CheckpointCorrupted, TwoPhaseCommitError

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.2
UNREACHABLE_SECONDS = 10.0
"""How long a start waits for the first event before it goes on without."""


class EventSource(Protocol):
    """The source of a job's events: a coordinator in this process, or a client of one elsewhere."""

    def watch(self, job: str) -> Iterator[events.CoordinatorEvent]:
        """Yield every event of a job from now on, its status first; a TwoPhaseCommitError breaks it off."""
        ...

    def stop_watching(self) -> None:
        """End every `watch`, for good."""
        ...


class EventWatch:
    """Follows one job's events while entered, on a thread of its own: each goes to `heard`, then to `on_event`.

    Before the run has `begun` an attempt, only that is published: how an earlier run ended is not its business.
    """

    def __init__(
        self,
        source: EventSource,
        job: str,
        heard: Callable[[events.CoordinatorEvent], None],
        on_event: Callable[[events.Event], None] | None,
    ) -> None:
        self.begun = False
        self._source = source
        self._job = job
        self._heard = heard
        self._on_event = on_event
        self._closed = threading.Event()
        self._connected = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="twopc-events", daemon=True)

    def __enter__(self) -> EventWatch:
        self._thread.start()
        self._connected.wait(UNREACHABLE_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._source.stop_watching()
        self._thread.join(5)

    def tell(self, notice: Tell) -> None:
        """Tell what the driver does, in the same stream as the coordinator's events."""
        self._publish(replace(notice.event, time_ms=int(time.time() * 1000)))

    def _follow(self) -> None:
        while not self._closed.is_set():
            try:
                for event in self._source.watch(self._job):
                    self._connected.set()
                    self._heard(event)
                    if self.begun or isinstance(event, events.AttemptStarted):
                        self._publish(event)
                    if self._closed.is_set():
                        return
            except TwoPhaseCommitError as error:
                log.debug("the event stream broke: %s", error)
                if isinstance(error, CheckpointCorrupted):
                    # There will be no events, and an attempt's start is refused for the same reason.
                    self._connected.set()
            self._closed.wait(RETRY_SECONDS)

    def _publish(self, event: events.Event) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            log.exception("the on_event callback raised; the job goes on")
