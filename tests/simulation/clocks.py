"""The clocks of a simulated process."""

from __future__ import annotations

from tests.simulation.process import Process
from tests.simulation.world import EPOCH_MS, World
from twopc.protocol.times import Instant


class SimClock:
    """The clocks of one process."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    def now(self) -> Instant:
        now_ms = self._world.now_ms
        # As the constructor does it, which is a function of Python: the time is asked for everywhere.
        return tuple.__new__(Instant, (now_ms + self._process.monotonic_ms, EPOCH_MS + now_ms + self._process.skew_ms))

    def monotonic(self) -> float:
        return (self._world.now_ms + self._process.monotonic_ms) / 1000
