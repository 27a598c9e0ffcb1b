"""The simulated broker answers as a real one does: random sequences of requests, played on both.

A difference is reported with its seed and with the shortest sequence that still shows it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial

import pytest

from tests.simulation.differential.connection import Connection
from tests.simulation.differential.grounds import PROTOCOLS, Grounds, Held, in_lanes
from tests.simulation.differential.play import Note, Play, difference
from tests.simulation.differential.simulated_side import SimulatedSide
from tests.simulation.differential.steps import Step, draw, shrink
from tests.simulation.transaction_coordinator import Producer

pytestmark = pytest.mark.broker

#: Each protocol has seeds of its own.
SEEDS = {1: range(250), 2: range(250, 500)}
TIMED = 32
SHORT_MS = 1_500
FAR = 1_000_000

both_protocols = pytest.mark.parametrize("protocol", PROTOCOLS, indirect=True, ids="protocol {}".format)


@both_protocols
def test_random_sequences_are_answered_as_a_real_broker_answers_them(protocol: int, grounds: Grounds) -> None:
    with grounds.connect() as connection:
        for seed in SEEDS[protocol]:
            differs = partial(_difference, grounds, connection, protocol)
            steps = draw(seed)
            if differs(steps):
                steps = shrink(steps, differs)
                report([_told(seed, steps, differs(steps))])


@both_protocols
def test_transactions_that_take_too_long_end_as_on_a_real_broker(protocol: int, grounds: Grounds) -> None:
    jobs = [partial(_timed, grounds, protocol, seed) for seed in SEEDS[protocol][:TIMED]]
    report(in_lanes(jobs))


# On one broker, as its ids are used up for both protocols at once.
@pytest.mark.xdist_group("exhausted")
@both_protocols
def test_producer_epochs_that_run_out_go_on_as_on_a_real_broker(
    protocol: int, grounds: Grounds, exhausted: dict[int, list[Held]]
) -> None:
    found: list[str] = []
    with grounds.connect() as connection:
        for seed, (prefix, held) in enumerate(exhausted[protocol]):
            # Not begun by InitProducerId, which would use up an epoch in each.
            steps = draw(seed)[1:]
            real = Play(grounds.side(connection, prefix=prefix), held).run(steps)
            found.append(_told(seed, steps, difference(_simulated(protocol, steps, held), real)))
    report(found)


def _timed(grounds: Grounds, protocol: int, seed: int, lane: int) -> str:
    """Play a sequence with a time-out; one that took so long itself that it ran into it is played again with more."""
    short_ms = SHORT_MS
    while True:
        steps = draw(seed, short_ms=short_ms)
        with grounds.connect() as connection:
            side = grounds.side(connection, lane=lane)
            began = time.monotonic()
            real = Play(side).run(steps)
            busy_s = time.monotonic() - began - side.lapsed_s
        if busy_s * 1_000 < short_ms / 2:
            return _told(seed, steps, difference(_simulated(protocol, steps), real))
        short_ms *= 2


def _difference(grounds: Grounds, connection: Connection, protocol: int, steps: Sequence[Step]) -> str:
    return difference(_simulated(protocol, steps), Play(grounds.side(connection)).run(steps))


def _simulated(protocol: int, steps: Sequence[Step], held: Mapping[str, Producer] | None = None) -> list[Note]:
    # Away from the producer ids that the simulated broker gives out itself.
    apart = {name: (FAR + producer_id, epoch) for name, (producer_id, epoch) in (held or {}).items()}
    return Play(SimulatedSide(bumps=protocol == 2, held=apart), apart).run(steps)


def _told(seed: int, steps: Sequence[Step], found: str) -> str:
    return found and "\n    ".join([f"seed {seed}:", *map(str, steps)]) + f"\n{found}"


def report(found: Sequence[str]) -> None:
    """Fail with all that was found, unabridged."""
    told = [each for each in found if each]
    if told:
        pytest.fail("\n".join(told), pytrace=False)
