"""The actions of clients on a job: they ask for checkpoints and savepoints, dispose of some, rescale and drain it.

Invariants that are checked: whoever's request was accepted by a coordinator that goes on is answered, once; no
checkpoint is deleted that may be needed, and no savepoint but those that were disposed of; and a job that is to drain
first ends with all of its input read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.simulation.coordinator import SimCoordinator
from tests.simulation.disk import CheckpointFolder
from tests.simulation.job import JOB
from tests.simulation.world import World
from twopc import events
from twopc.errors import TwoPhaseCommitError
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ids import NO_ATTEMPT
from twopc.protocol.requests import DisposeCheckpoint, Rescale, StopJob, TriggerCheckpoint


class ClientActions:
    """Follow the events of all coordinators of a run."""

    def __init__(self, world: World, folder: CheckpointFolder, find: Callable[[], SimCoordinator | None]) -> None:
        self._world = world
        self._folder = folder
        self._find = find
        self._asked: dict[str, SimCoordinator] = {}
        self._answers: Counter[str] = Counter()
        self._attempt = NO_ATTEMPT

    def act(self, strike: int) -> None:
        """Want something of the coordinator that has the address now."""
        coordinator = self._find()
        if coordinator is not None:
            often = self._drain if self._world.faults.ends_drained else self._ask
            do = self._world.of((self._ask, often, self._dispose, self._drain, self._rescale), strike)
            do(coordinator, strike // 16)

    def drain(self) -> None:
        """Have a job that has no end read to the end that its input has now, and finish."""
        coordinator = self._find()
        if coordinator is not None:
            self._want(coordinator, "asked to drain", StopJob(self._attempt, drain=True))

    def _ask(self, coordinator: SimCoordinator, strike: int) -> None:
        """Ask for a manual checkpoint, or for a savepoint."""
        kind = self._world.of((CheckpointKind.MANUAL, CheckpointKind.SAVEPOINT), strike)
        request_id = f"request-{strike}"
        try:
            coordinator.ask(lambda jobs: jobs.request(JOB, TriggerCheckpoint(kind, request_id, request_id)))
        except TwoPhaseCommitError:
            return
        self._world.coverage[f"asked for: {kind}"] += 1
        self._world.note("people", "asked", kind, request_id, "of", coordinator.process.name)
        self._asked[request_id] = coordinator

    def _dispose(self, coordinator: SimCoordinator, strike: int) -> None:
        """Let go of any savepoint; that one which may be needed is kept all the same is for the coordinator to see."""
        savepoints = sorted(self._folder.savepoints)
        if savepoints:
            chosen = self._world.of(savepoints, strike)
            self._want(coordinator, "disposed of a savepoint", DisposeCheckpoint(chosen))

    def _drain(self, coordinator: SimCoordinator, strike: int) -> None:
        """Have the job read its input to the end, take a last checkpoint or savepoint, and finish."""
        savepoint = bool(strike % 2)
        self._want(coordinator, "asked to drain", StopJob(self._attempt, savepoint=savepoint, drain=True))

    def _rescale(self, coordinator: SimCoordinator, strike: int) -> None:
        """Have the job go on with another number of subtasks, after whichever checkpoint completes next."""
        parallelism = 1 + strike % self._world.faults.most_subtasks
        self._want(coordinator, "asked to rescale", Rescale(parallelism, f"rescale-{strike}"))

    def _want(self, coordinator: SimCoordinator, what: str, request: DisposeCheckpoint | StopJob | Rescale) -> None:
        try:
            coordinator.ask(lambda jobs: jobs.request(JOB, request))
        except TwoPhaseCommitError:
            return
        self._world.coverage[what] += 1
        self._world.note("people", what, request)

    def told(self, event: events.CoordinatorEvent) -> None:
        """Take an event in; whatever is deleted is deleted before the next one is triggered."""
        match event:
            case events.AttemptStarted():
                self._attempt = max(self._attempt, event.attempt)
            case events.CheckpointTriggered():
                self._check_what_is_kept()
            case events.CheckpointCompleted():
                self._world.coverage[f"completed: {event.kind}"] += 1
            case events.CheckpointAborted():
                self._world.coverage[f"aborted: {event.reason}"] += 1
            case _:
                pass
        if isinstance(event, events.CheckpointCompleted | events.CheckpointAborted) and event.request_id:
            self._answers[event.request_id] += 1

    def judge(self) -> None:
        """Enter what people have to complain about when the run is over."""
        self._check_what_is_kept()
        twice = [request for request, count in self._answers.items() if count > 1]
        if twice:
            self._world.violated("a request was answered twice", ", ".join(twice))
        living = {request for request, coordinator in self._asked.items() if coordinator.process.alive}
        forgotten = sorted(living - set(self._answers))
        if forgotten:
            self._world.violated("a request was never answered", ", ".join(forgotten))

    def _check_what_is_kept(self) -> None:
        gone = self._folder.missing()
        if gone:
            self._world.violated("a checkpoint that may be needed was deleted", gone)
