"""The plan of a soak's faults: drawn from a seed, as data.

The mix changes every few seconds, as in the tests of Bufstream: a phase sees a few kinds of fault, or none at all.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.timed_faults import Action, Target, TimedFault

KINDS = (
    *((action, target) for target in Target for action in (Action.KILL, Action.TERMINATE, Action.PAUSE)),
    (Action.ZOMBIE, Target.WORKER),
)

PHASE_SECONDS = (4.0, 9.0)
QUIET_SHARE = 0.3
BETWEEN_SECONDS = (0.5, 4.0)
#: A broker needs some seconds until it serves again; more of its faults would be one long outage.
BROKER_PAUSE_SECONDS = 8.0


def plan(seed: int, seconds: float) -> list[TimedFault]:
    """The faults of a soak of so many seconds."""
    steps: list[TimedFault] = []
    broker_free = 0.0
    for step in _all(random.Random(seed), seconds):
        if step.target is Target.BROKER:
            if step.at < broker_free:
                continue
            broker_free = step.at + BROKER_PAUSE_SECONDS
        steps.append(step)
    return steps


def _all(chance: random.Random, seconds: float) -> Iterator[TimedFault]:
    begin = chance.uniform(1.0, 3.0)
    while begin < seconds:
        end = begin + chance.uniform(*PHASE_SECONDS)
        mix = [] if chance.random() < QUIET_SHARE else chance.sample(KINDS, chance.randint(1, 4))
        at = begin + chance.uniform(*BETWEEN_SECONDS)
        while mix and at < min(end, seconds):
            action, target = chance.choice(mix)
            away = chance.choice((chance.uniform(0.0, 0.5), chance.uniform(0.5, 3.0), chance.uniform(3.0, 9.0)))
            yield TimedFault(at, action, target, away, chance.randrange(1_000))
            at += chance.uniform(*BETWEEN_SECONDS)
        begin = end
