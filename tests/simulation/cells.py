"""The states of all processes when one is stopped: with the place, a cell of the coverage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from tests.simulation.process import Process
from tests.simulation.world import World
from twopc import events
from twopc.protocol.ids import CheckpointId

NONE = CheckpointId(0)


class PeerState(Enum):
    """The first of these that holds."""

    AWAY = "another process is down or paused"
    RECOVERING = "another process, a driver, recovers the job"
    IN_FLIGHT = "a checkpoint is in flight"
    UNCOMMITTED = "a checkpoint is completed, not committed everywhere"
    QUIET = "none of these"


class Peers:
    """Follows what the coordinators publish, and looks at the processes."""

    def __init__(
        self, world: World, wanted: Callable[[], Sequence[Process]], recovering: Callable[[], Sequence[Process]]
    ) -> None:
        self._world = world
        self._wanted = wanted
        self._recovering = recovering
        self._in_flight: set[CheckpointId] = set()
        self._uncommitted = NONE

    def told(self, event: events.CoordinatorEvent) -> None:
        match event:
            case events.CheckpointTriggered(checkpoint_id=number):
                self._in_flight.add(number)
            case events.CheckpointCompleted(checkpoint_id=number):
                self._in_flight.discard(number)
                self._uncommitted = number
            case events.CheckpointAborted(checkpoint_id=number):
                self._in_flight.discard(number)
            case events.CheckpointConfirmed(checkpoint_id=number) if number >= self._uncommitted:
                self._uncommitted = NONE
            case events.AttemptStarted():
                self._in_flight.clear()
                self._uncommitted = NONE
            case _:
                pass

    def seen_by(self, process: Process) -> PeerState:
        """The state of everybody but this process."""
        if any(self._is_away(each) for each in self._wanted() if each is not process):
            return PeerState.AWAY
        if any(each is not process for each in self._recovering()):
            return PeerState.RECOVERING
        if self._in_flight:
            return PeerState.IN_FLIGHT
        return PeerState.UNCOMMITTED if self._uncommitted else PeerState.QUIET

    def _is_away(self, process: Process) -> bool:
        return not process.alive or process.paused_until > self._world.now_ms
