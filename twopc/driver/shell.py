"""Plays a driver's machine on real clients, brokers and subtasks: carries out what it wants, tells it what happens.

Needs no main thread and no signals: a stop is an event that somebody sets. What may never be answered (a broker, a
coordinator) runs on a thread of its own, and nobody waits for it any longer than the machine does; the subtasks are
watched, started and ended on the thread that runs the shell, because those of `twopc.driver.inline` run in it.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from twopc.checkpoints.catalog import positions_of_kept
from twopc.checkpoints.damage import refusal
from twopc.driver.edge import Coordinator
from twopc.driver.effects import Action, Begun, Log, Tell
from twopc.driver.events import EventWatch
from twopc.driver.host import Host, RunningSubtasks
from twopc.driver.machine import (
    AbortRequested,
    ActionFailed,
    ActionRequest,
    Answer,
    Driver,
    Event,
    Output,
    Over,
    Start,
    StopRequested,
    SubtaskEnded,
    Tick,
)
from twopc.errors import CheckpointCorrupted, TwoPhaseCommitError
from twopc.faults import points
from twopc.faults.crash_table import CrashPoint
from twopc.graph import JobDefinition
from twopc.job_connectors import JobSink
from twopc.logs import NEVER_HIDDEN
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.sink import Committer
from twopc.source import Source
from twopc.storage.store import CheckpointStore
from twopc.storage.work_folder import remove_of_attempt

log = logging.getLogger(__name__)

LOOK_SECONDS, LOOK_SECONDS = 0.1, 0.05
"""How long something that happened may go unnoticed while subtasks run, and while none do."""


@dataclass(slots=True)
class JobEdge:
    """The edge of a driver in production."""

    definition: JobDefinition
    source: Source
    sink: JobSink
    coordinator: Coordinator
    host: Host
    store: CheckpointStore
    running: RunningSubtasks | None = None
    committer: Committer | None = None

    def reached(self, point: CrashPoint, checkpoint: CheckpointId) -> None:
        points.reached(point, checkpoint=checkpoint)

    def all_damage(self, error: CheckpointCorrupted, checkpoint_id: CheckpointId | None) -> TwoPhaseCommitError:
        return refusal(error, self.store, self.definition.name, checkpoint_id)

    def kept_positions(self) -> Sequence[SplitPosition]:
        return positions_of_kept(self.store, self.definition.name)

    def remove_work(self, attempt: AttemptId) -> None:
        remove_of_attempt(self.store, self.definition.name, attempt)


class DriverShell:
    """Runs one machine to its end; `events` is where its coordinator's events are to be put."""

    def __init__(
        self, driver: Driver, edge: JobEdge, watch: EventWatch, events: queue.Queue[Event], stop: threading.Event
    ) -> None:
        self._driver = driver
        self._edge = edge
        self._watch = watch
        self._events = events
        self._stop = stop
        self._ended_subtasks: RunningSubtasks | None = None
        self._over: Over | None = None

    def run(self) -> None:
        """Return when the job has ended well; raise the error that ends it otherwise."""
        event: Event = Start()
        while self._over is None:
            try:
                self._carry_out(self._driver.step(event, time.monotonic()))
                event = self._next()
            except KeyboardInterrupt as interrupt:
                event = AbortRequested(interrupt)
        if self._over.error is not None:
            raise self._over.error

    def _next(self) -> Event:
        """Wait for what happens next, but not for long."""
        if self._stop.is_set() and not self._driver.stop_wanted:
            return StopRequested()
        running = self._edge.running
        try:
            if running is None or running is self._ended_subtasks:
                return self._events.get(timeout=LOOK_SECONDS)
            return self._events.get_nowait()
        except queue.Empty:
            if running is None or running is self._ended_subtasks or not running.wait(LOOK_SECONDS):
                return Tick()
        self._ended_subtasks = running
        return SubtaskEnded(running.error(), running.told_why())

    def _carry_out(self, outputs: list[Output]) -> None:
        for output in outputs:
            match output:
                case ActionRequest(number, action) if action.on_calling_thread:
                    self._events.put(self._answered(number, action))
                case ActionRequest(number, action):
                    self._begin(number, action)
                case Tell():
                    self._watch.tell(output)
                case Begun():
                    self._watch.begun = True
                case Log():
                    _write(output)
                case Over():
                    self._over = output

    def _begin(self, number: int, action: Action[Any]) -> None:
        def run() -> None:
            self._events.put(self._answered(number, action))

        threading.Thread(target=run, name=f"twopc-{type(action).__name__}", daemon=True).start()

    def _answered(self, number: int, action: Action[Any]) -> Event:
        try:
            return Answer(number, action.carry_out(self._edge))
        except Exception as error:  # noqa: BLE001 - the machine decides what it means
            return ActionFailed(number, error)


def _write(line: Log) -> None:
    logger = logging.getLogger(NEVER_HIDDEN) if line.never_hidden else log
    logger.log(line.level, "%s", line.message, exc_info=line.error)
