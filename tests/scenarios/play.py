"""Plays a script with the simulation's world, in which nothing is left to chance, and returns its transcript."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

from tests.scenarios.script import Script
from tests.scenarios.transcript import TranscriptWorld
from tests.simulation.faults import UNLIMITED, Faults, draw
from tests.simulation.job import FIRST_SINK, JOB, KAFKA_TOPICS
from tests.simulation.patches import playing
from tests.simulation.run import Simulation
from tests.simulation.verdict import judge_run
from twopc.config import NO_TIMEOUT_MS
from twopc.protocol.requests import StopJob

LONGEST_MS = 120_000
OUTPUT = KAFKA_TOPICS[FIRST_SINK]
SETTLED_MS = 3_000
"""How long a story goes on when the job has finished: so long that whoever was left behind has ended."""


class _Steady(random.Random):
    """Whatever is drawn is the middle, so that a transcript changes only where the behaviour does."""

    def random(self) -> float:
        return 0.499


def play(script: Script) -> str:
    """Return the transcript of a script; a broken invariant stands in it."""
    until = script.numbers.get("until", LONGEST_MS)
    world = TranscriptWorld(0, _faults(script), frozenset(script.faults), shown_until_ms=until)
    world.rng = _Steady()
    simulation = Simulation(world)
    with playing(world):
        simulation.start_coordinator()
        simulation.start_driver()
        for at, action in script.actions:
            world.after(at, partial(_act, simulation, action))
        last = max((at for at, _ in script.actions), default=0)
        while world.now_ms < LONGEST_MS and not (world.now_ms > last and _is_over(simulation)):
            world.run_until(world.now_ms + 100)
        world.run_until(world.now_ms + SETTLED_MS)
        judge_run(simulation)
    assert set(world.dice.applied) == script.faults, "a fault of the script never struck"
    for partition in range(len(script.records)):
        world.note("reader", "sees", f"partition {partition}:", *simulation.broker.read_committed(OUTPUT, partition))
    return "".join(f"{line}\n" for line in world.lines)


def _is_over(simulation: Simulation) -> bool:
    return simulation.driver.done or bool(simulation.lost or simulation.refused)


def _faults(script: Script) -> Faults:
    """Return a quiet world, in which each fault of the script may strike."""
    numbers = script.numbers
    drawn = draw(0)
    quiet: dict[str, Any] = {each.name: _quiet(getattr(drawn, each.name)) for each in fields(Faults)}
    quiet.update(
        aimed_occasion=-1,
        sizes=script.records,
        other_sizes=(),
        sinks=(FIRST_SINK,),
        restart_attempts=UNLIMITED,
        most_subtasks=_most(numbers.get("subtasks", 1)),
        interval_ms=numbers.get("interval", 500),
        max_concurrent=numbers.get("concurrent", 1),
        tolerable_failures=3,
        transaction_timeout_ms=numbers.get("timeout", NO_TIMEOUT_MS),
        retained=3,
        network_delay_ms=4,
        last_producer_epoch=32_766,
        broker_protocol=2,
        embedded=False,
        fault_phase_ms=LONGEST_MS,
    )
    return Faults(**quiet)


def _quiet(drawn: object) -> object:
    """A rate is 1, as only what the script names strikes; whatever happens by itself never does."""
    if isinstance(drawn, float):
        return 1.0
    return 0 if isinstance(drawn, int) else drawn


def _most(subtasks: int) -> int:
    """Return of how many subtasks at most this is the middle."""
    return 2 * subtasks - 1


def _act(simulation: Simulation, action: str) -> None:
    world = simulation.world
    world.note("people", action)
    verb, _, rest = action.partition(" ")
    _ACTIONS[verb](simulation, rest)


def _kill(simulation: Simulation, name: str) -> None:
    victim = next(process for process in simulation.living() if process.name == name)
    simulation.world.kill(victim, "with kill -9")


def _start(simulation: Simulation, what: str) -> None:
    """Start one more driver: from the newest checkpoint, or from one that is named."""
    *_, checkpoint = what.rpartition("from checkpoint ")
    simulation.restore_from = checkpoint if checkpoint.isdecimal() else "latest"
    simulation.start_driver()


def _stop(simulation: Simulation, how: str) -> None:
    request = StopJob(simulation.newest_attempt, savepoint="savepoint" in how)
    simulation.coordinators[-1].ask(lambda jobs: jobs.request(JOB, request))


def _use(simulation: Simulation, subtasks: str) -> None:
    world = simulation.world
    world.faults = replace(world.faults, most_subtasks=_most(int(subtasks.split()[0])))


_ACTIONS: dict[str, Callable[[Simulation, str], None]] = {
    "kill": _kill,
    "start": _start,
    "stop": _stop,
    "use": _use,
}
