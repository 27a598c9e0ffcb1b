"""One driver with its coordinator and its subtasks, until it ends or is dropped: production's machines, in one thread.

Time stands still, but where nobody has anything to do before some moment: before a restart, that is.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from twopc import events
from twopc.clock import ManualClock
from twopc.config import RunSettings
from twopc.driver.edge import Coordinator
from twopc.driver.effects import Action
from twopc.driver.host import Host
from twopc.driver.machine import (
    ActionFailed,
    ActionRequest,
    Answer,
    Driver,
    Event,
    Output,
    Over,
    Start,
    SubtaskEnded,
    Tick,
)
from twopc.driver.running_job import RunningJob
from twopc.errors import CheckpointCorrupted, CheckpointDeclined, TwoPhaseCommitError
from twopc.faults.crash_table import CrashPoint
from twopc.graph import JobDefinition
from twopc.job_connectors import JobSink
from twopc.protocol.checkpoints import LATEST
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId, CheckpointId
from twopc.protocol.requests import NextGlobalCommit
from twopc.sink import Committer
from twopc.source import Source
from twopc.storage.memory import MemoryStore
from twopc.testing.memory.coordinator import DirectCoordinator
from twopc.testing.memory.subtasks import MemoryHost, MemorySubtasks


@dataclass(slots=True)
class MemoryEdge:
    """The edge of a driver in memory."""

    definition: JobDefinition
    source: Source
    sink: JobSink
    coordinator: Coordinator
    host: Host
    running: Any = None
    committer: Committer | None = None

    def reached(self, point: CrashPoint, checkpoint: CheckpointId) -> None:
        """Nobody stops this process there."""

    def all_damage(self, error: CheckpointCorrupted, checkpoint_id: CheckpointId | None) -> TwoPhaseCommitError:
        return error

    def kept_positions(self) -> Sequence[SplitPosition]:
        """Topics in memory keep what they hold."""
        return ()

    def remove_work(self, attempt: AttemptId) -> None:
        """The folder goes with the run."""


@dataclass(slots=True)
class Outcomes:
    """The outcomes of checkpoints, as the coordinator said them."""

    of_requests: dict[str, events.CheckpointCompleted | events.CheckpointAborted] = field(default_factory=dict)
    confirmed: CheckpointId = NO_CHECKPOINT

    def note(self, event: events.CoordinatorEvent) -> None:
        match event:
            case events.CheckpointCompleted() | events.CheckpointAborted() if event.request_id:
                self.of_requests[event.request_id] = event
            case events.CheckpointConfirmed():
                self.confirmed = max(self.confirmed, event.checkpoint_id)


class MemoryProcess:
    """`over` once the job has finished; its caller raises what ends it otherwise."""

    def __init__(
        self, definition: JobDefinition, settings: RunSettings, store: MemoryStore, clock: ManualClock, folder: Path
    ) -> None:
        self.over = False
        self._job = definition.name
        self._clock = clock
        self._events: deque[Event] = deque([Start()])
        self._outcomes = Outcomes()
        self._requests = count(1)
        self._coordinator = DirectCoordinator(store, clock, self._heard)
        self._driver = Driver(RunningJob(definition, "", ""), settings, LATEST)
        host = MemoryHost(self._coordinator, store, clock, folder)
        self._edge = MemoryEdge(definition, definition.source, definition.sink, self._coordinator, host)
        self._ended_subtasks: MemorySubtasks | None = None

    def start(self) -> None:
        """Recover, and start the subtasks."""
        self._run_until(lambda: self._running is not None)

    def run_through(self) -> None:
        """Let all that is there to be read go through the job."""
        if self._running is not None:
            self._running.wake()
        self._run_until(lambda: self._running is not None and not self._events and self._running.quiet)

    @property
    def stream_time(self) -> int | None:
        """The greatest of any operator and partition number."""
        return None if self._running is None else self._running.stream_time

    def pass_time(self, sources: Collection[str], to: int) -> None:
        """Let time pass at the operators behind these sources alone."""
        for subtask in [] if self._running is None else self._running.subtasks:
            subtask.pass_time(sources, to)

    def checkpoint(self) -> bool:
        """Take a checkpoint and commit it; return False where an attempt failed meanwhile, so none was completed."""
        attempts, request = self._driver.progress.attempts, self._trigger()
        self._run_until(lambda: request in self._outcomes.of_requests or self._driver.progress.attempts > attempts)
        outcome = self._outcomes.of_requests.get(request)
        if self.over or outcome is None:
            return self.over
        if isinstance(outcome, events.CheckpointAborted):
            if self._driver.progress.current.failure is None:
                raise CheckpointDeclined(outcome.message)
            self._run_until(lambda: self._driver.progress.attempts > attempts)
            return False
        done = outcome.checkpoint_id
        self._run_until(lambda: self._outcomes.confirmed >= done or self._driver.progress.attempts > attempts)
        self._commit_globally()
        return True

    def pre_commit(self) -> None:
        """Take a checkpoint up to where every subtask has pre-committed, and none was heard to."""
        self._trigger()
        if self._running is not None:
            self._running.step()

    def complete(self) -> None:
        """Take a checkpoint up to where it has completed, and no subtask knows."""
        self.pre_commit()
        if self._running is not None:
            self._running.deliver()

    def kill(self) -> None:
        """End in order, without another checkpoint."""
        if self._running is not None:
            self._running.kill()

    @property
    def positions(self) -> tuple[SplitPosition, ...]:
        """The positions of all splits."""
        return () if self._running is None else self._running.positions

    def has_more(self, since: tuple[SplitPosition, ...]) -> bool:
        """Whether topics in memory hold more than what was read when the positions were these.

        The job may have written to what it reads: that was committed, and perhaps read, after the checkpoint. An
        attempt that failed behind it may have had more to read. Marks of time to be written are read, too.
        """
        running = self._running
        if self.over or running is None:
            return not self.over
        return running.unread or running.positions != since or not running.times_settled

    @property
    def _running(self) -> MemorySubtasks | None:
        running: MemorySubtasks | None = self._edge.running
        return running

    def _commit_globally(self) -> None:
        """Let the driver commit for all subtasks what is due, however often it has to try."""
        coordinator, progress = self._coordinator, self._driver.progress
        while not self.over and coordinator.ask(self._job, NextGlobalCommit(progress.current.attempt)) is not None:
            if self._events or self._running is None:
                self._turn()
            else:
                self._let_time_pass()

    def _trigger(self) -> str:
        request = str(next(self._requests))
        self._coordinator.trigger(self._job, request)
        return request

    def _heard(self, event: events.CoordinatorEvent) -> None:
        self._outcomes.note(event)
        self._events.append(event)

    def _run_until(self, done: Callable[[], bool]) -> None:
        while not self.over and not done():
            self._turn()

    def _turn(self) -> None:
        """Let the driver decide about what has happened, or else the subtasks move, or else time pass."""
        running = self._running
        if self._events:
            for output in self._driver.step(self._events.popleft(), self._clock.monotonic()):
                self._carry_out(output)
        elif running is None or running is self._ended_subtasks:
            self._let_time_pass()
        else:
            running.step()
            if running.wait(0):
                self._ended_subtasks = running
                self._events.append(SubtaskEnded(running.error(), running.told_why()))
            running.deliver()

    def _let_time_pass(self) -> None:
        deadline = self._driver.deadline
        assert deadline is not None, "nobody has anything to do"
        self._clock.advance(max(1, math.ceil((deadline - self._clock.monotonic()) * 1000)))
        self._coordinator.tick()
        self._events.append(Tick())

    def _carry_out(self, output: Output) -> None:
        match output:
            case ActionRequest(number, action):
                self._events.append(self._answered(number, action))
            case Over(error):
                self.over = True
                if error is not None:
                    raise error

    def _answered(self, number: int, action: Action[Any]) -> Event:
        try:
            return Answer(number, action.carry_out(self._edge))
        except Exception as error:  # noqa: BLE001 - the machine decides what it means
            return ActionFailed(number, error)
