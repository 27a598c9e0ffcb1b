"""One seed from its faults to its verdict."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.simulation.chaos import Chaos
from tests.simulation.dice import Strike
from tests.simulation.faults import Faults, draw
from tests.simulation.patches import playing
from tests.simulation.process import Stuck
from tests.simulation.run import Simulation
from tests.simulation.verdict import judge_run
from tests.simulation.world import World


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run: nothing violated, or what. `lost` is the message of a loss that was said aloud."""

    seed: int
    violations: tuple[str, ...]
    lost: str
    trace: tuple[str, ...]
    coverage: Counter[str]
    faults: Faults
    strikes: tuple[Strike, ...]


def simulate(
    seed: int, *, faults: Faults | None = None, only: frozenset[Strike] | None = None, keeps_trace: bool = True
) -> Result:
    """Play one seed and judge it; with the faults that are drawn from it or others, or `only` these strikes of them."""
    faults = faults or draw(seed)
    world = World(seed, faults, only, keeps_trace=keeps_trace)
    simulation = Simulation(world)
    with playing(world):
        try:
            simulation.start()
            Chaos(simulation).plan()
            simulation.run()
            judge_run(simulation)
        except Stuck as error:
            world.violated("stuck", error)
    return Result(
        seed,
        tuple(world.violations),
        simulation.lost,
        tuple(world.trace()),
        Counter(world.coverage),
        faults,
        tuple(world.dice.applied),
    )
