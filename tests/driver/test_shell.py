"""The driver's shell, hosted by something other than a command line."""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.driver.test_machine import Coordinator, EmptySink, QuietSource
from tests.plain_jobs import in_a_row
from twopc import events
from twopc.config import RunSettings
from twopc.driver.events import EventWatch
from twopc.driver.machine import Driver, Event
from twopc.driver.running_job import RunningJob
from twopc.driver.shell import LOOK_SECONDS, DriverShell, JobEdge
from twopc.protocol.attempts import StartedAttempt
from twopc.storage.local import LocalStore

PATIENCE_SECONDS = 120


class Silent:
    """A coordinator that tells nothing."""

    def watch(self, job: str) -> Iterator[events.CoordinatorEvent]:
        return iter(())

    def stop_watching(self) -> None:
        pass


def shell_of(coordinator: Any, folder: Path, stop: threading.Event) -> DriverShell:
    definition = in_a_row("flights", QuietSource(), (), EmptySink())
    events: queue.Queue[Event] = queue.Queue()
    host: Any = None
    edge = JobEdge(definition, definition.source, definition.sink, coordinator, host, LocalStore(folder))
    driver = Driver(RunningJob(definition, "", ""), RunSettings(), "latest")
    return DriverShell(driver, edge, EventWatch(Silent(), "flights", events.put, None), events, stop)


class NeverAnswering(Coordinator):
    """Takes the start of an attempt, and gives no answer before the test is over."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.over = threading.Event()

    def start_attempt(self) -> StartedAttempt:
        self.asked.set()
        self.over.wait(PATIENCE_SECONDS)
        return super().start_attempt()


def test_a_driver_beside_the_main_thread_is_stopped_by_an_event_whatever_it_waits_for(tmp_path: Path) -> None:
    stop, coordinator = threading.Event(), NeverAnswering()
    shell, ended = shell_of(coordinator, tmp_path, stop), threading.Event()

    def run() -> None:
        shell.run()
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert coordinator.asked.wait(PATIENCE_SECONDS)
    stop.set()
    try:
        assert ended.wait(PATIENCE_SECONDS / 2)
    finally:
        coordinator.over.set()
        thread.join(PATIENCE_SECONDS)


def test_a_stop_by_a_signal_is_obeyed_though_its_handler_takes_longer_than_a_look(tmp_path: Path) -> None:
    stop, coordinator = threading.Event(), NeverAnswering()
    given_up = threading.Timer(PATIENCE_SECONDS / 2, coordinator.over.set)

    def on_signal(*_: object) -> None:
        time.sleep(LOOK_SECONDS * 4)
        stop.set()

    def interrupt() -> None:
        assert coordinator.asked.wait(PATIENCE_SECONDS)
        signal.pthread_kill(main, signal.SIGUSR1)

    before, main, wake = (
        signal.signal(signal.SIGUSR1, on_signal),
        threading.get_ident(),
        threading.Thread(target=interrupt),
    )
    try:
        given_up.start()
        wake.start()
        shell_of(coordinator, tmp_path, stop).run()
        assert not coordinator.over.is_set()
    finally:
        signal.signal(signal.SIGUSR1, before)
        given_up.cancel()
        coordinator.over.set()
        wake.join()
