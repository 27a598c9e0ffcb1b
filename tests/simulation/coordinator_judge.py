"""Judges a coordinator at each message and event, at the moment when it goes out: what it tells is stored by then.

Besides, it triggers what is due before all else, beside nothing that must be alone, and no more than is allowed; and
the phase of its job changes as the table says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from coordinator.core import Core
from coordinator.events import Decision, Event
from coordinator.status import PHASE_CHANGES
from tests.simulation.disk import CheckpointFolder
from tests.simulation.world import World
from twopc import events
from twopc.errors import CheckpointCorrupted
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId, CheckpointId
from twopc.protocol.layout import metadata_path
from twopc.protocol.messages import Abort, Complete, Finish, ToSubtask, Trigger
from twopc.protocol.times import Instant

NOT_STORED = "it was told before it was stored"
ALONE = (CheckpointKind.SAVEPOINT, CheckpointKind.FINAL, CheckpointKind.FINAL_SAVEPOINT)
CHANGES = {(change.before, change.after) for change in PHASE_CHANGES}

_step = Core.step


def phase_change(before: str, after: str) -> str:
    """What the coverage calls it."""
    return f"phase {before} to {after}"


def watched_step(world_now: Callable[[], World]) -> Callable[[Core, Event, Instant], Decision]:
    """Return a step of the core that is judged by the table of phases."""

    def step(core: Core, event: Event, now: Instant) -> Decision:
        before = core.phase
        decision = _step(core, event, now)
        after = core.phase
        if after is not before:
            world, change = world_now(), phase_change(before.name, after.name)
            world.coverage[change] += 1
            if (before, after) not in CHANGES:
                world.violated("a phase changed as no table says", change)
        return decision

    return step


class CoordinatorJudge:
    """The judge of one coordinator. `queued` says what people wait for."""

    def __init__(self, world: World, folder: CheckpointFolder, queued: Callable[[], list[CheckpointKind]]) -> None:
        self._world = world
        self._folder = folder
        self._queued = queued
        self._most = 1 if world.faults.min_pause_ms else world.faults.max_concurrent
        self._in_flight: dict[CheckpointId, CheckpointKind] = {}
        self._triggered = NO_CHECKPOINT
        self._completed: set[CheckpointId] = set()
        self._aborted: set[CheckpointId] = set()

    def sent(self, attempt: AttemptId, message: ToSubtask) -> None:
        """Judge a message to a subtask of this attempt."""
        folder = self._folder
        match message:
            case Trigger(number) if number > folder.last_reserved:
                self._world.violated(NOT_STORED, f"the id of checkpoint {number}")
            case Complete(number):
                if not folder.was_completed(number):
                    self._world.violated(NOT_STORED, f"the completion record of checkpoint {number}")
                self._completed.add(number)
                self._judge_both(number)
            case Abort(number, _):
                self._aborted.add(number)
                self._judge_both(number)
            case Finish() if attempt not in folder.ended:
                self._world.violated(NOT_STORED, f"the end of attempt {attempt}")
            case _:
                pass

    def told(self, event: events.CoordinatorEvent) -> None:
        """Judge an event."""
        match event:
            case events.AttemptStarted():
                self._in_flight.clear()
            case events.CheckpointTriggered(checkpoint_id=number):
                self._judge_trigger(event)
                self._in_flight[number] = event.kind
                self._triggered = number
            case events.CheckpointCompleted(checkpoint_id=number):
                self._in_flight.pop(number, None)
                self._judge_snapshots(number)
            case events.CheckpointAborted(checkpoint_id=number):
                self._in_flight.pop(number, None)
            case events.CheckpointConfirmed(checkpoint_id=number):
                if outstanding := self._folder.outstanding_of(number):
                    self._world.violated(NOT_STORED, f"the commit of {', '.join(sorted(outstanding))}")
            case _:
                pass

    def _judge_both(self, number: CheckpointId) -> None:
        if number in self._completed and number in self._aborted:
            self._world.violated("a checkpoint was told to be aborted and to be completed", number)

    def _judge_trigger(self, event: events.CheckpointTriggered) -> None:
        number, kind, violated = event.checkpoint_id, event.kind, self._world.violated
        if number <= self._triggered:
            violated("the ids of checkpoints don't grow", f"{number} behind {self._triggered}")
        if len(self._in_flight) >= self._most:
            violated("too many checkpoints are in flight", f"{number} beside {list(self._in_flight)}")
        if any(other in ALONE for other in self._in_flight.values()):
            violated("a checkpoint was triggered beside one that must be alone", f"{number} of {self._in_flight}")
        queued = self._queued()
        if CheckpointKind.SAVEPOINT in queued and kind is not CheckpointKind.SAVEPOINT:
            violated("another checkpoint went before a savepoint", f"{number}, which is {kind}")
        if queued and kind is CheckpointKind.PERIODIC:
            violated("a periodic checkpoint went before what people wait for", f"{number}, before {queued}")

    def _judge_snapshots(self, number: CheckpointId) -> None:
        """Each subtask has one in it, of this checkpoint."""
        try:
            snapshots: list[dict[str, Any]] = orjson.loads(self._folder.get(metadata_path(number)))["body"]["snapshots"]
        except (CheckpointCorrupted, OSError, ValueError, KeyError):
            return
        paths = [each["state"]["path"] for each in snapshots]
        if paths != [f"chk-{number}/subtask-{index}" for index in range(len(paths))]:
            self._world.violated("a checkpoint completed with other snapshots than its own", f"{number}: {paths}")
