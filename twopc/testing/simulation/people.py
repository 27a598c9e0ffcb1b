"""People beside a job: they ask for checkpoints and savepoints, want answers, and want what is theirs to be kept.

Invariants that are checked: whoever's request was accepted by a coordinator that goes on is answered, once; and no
checkpoint is deleted that may be needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from coordinator.events import CheckpointAsked
from twopc.errors import TwoPhaseCommitError
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.job_events import JobEvent, JobEventKind
from twopc.testing.simulation.coordinator import JOB, SimCoordinator
from twopc.testing.simulation.disk import CheckpointFolder
from twopc.testing.simulation.world import World


class People:
    """Follow the events of all coordinators of a run."""

    def __init__(self, world: World, folder: CheckpointFolder, find: Callable[[], SimCoordinator | None]) -> None:
        self._world = world
        self._folder = folder
        self._find = find
        self._asked: dict[str, SimCoordinator] = {}
        self._answers: Counter[str] = Counter()

    def ask(self, strike: int) -> None:
        """Ask the coordinator that has the address now for a manual checkpoint, or for a savepoint."""
        coordinator = self._find()
        kind = self._world.of((CheckpointKind.MANUAL, CheckpointKind.SAVEPOINT), strike)
        request_id = f"request-{strike}"
        if coordinator is None:
            return
        try:
            coordinator.ask(lambda jobs: jobs.request(JOB, CheckpointAsked(kind, request_id, request_id)))
        except TwoPhaseCommitError:
            return
        self._world.coverage[f"asked for: {kind}"] += 1
        self._world.note("people", "asked", kind, request_id, "of", coordinator.process.name)
        self._asked[request_id] = coordinator

    def told(self, event: JobEvent) -> None:
        """Take an event in; whatever is deleted is deleted before the next one is triggered."""
        match event.kind:
            case JobEventKind.TRIGGERED:
                self._check_what_is_kept()
            case JobEventKind.COMPLETED:
                self._world.coverage[f"completed: {event.checkpoint_kind}"] += 1
            case JobEventKind.ABORTED:
                self._world.coverage[f"aborted: {event.reason}"] += 1
            case _:
                pass
        if event.request_id and event.kind in (JobEventKind.COMPLETED, JobEventKind.ABORTED):
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
