"""Which faults a soak meets, and when: drawn from a seed, as data.

The mix changes every few seconds, as in the tests of Bufstream: a phase sees a few kinds of fault, or none at all.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Target(Enum):
    """Whom a fault meets."""

    WORKER = "worker"
    DRIVER = "driver"
    COORDINATOR = "coordinator"
    BROKER = "broker"


class Action(Enum):
    """What is done to it. A zombie is a worker that sleeps through the death of its driver, and wakes later."""

    KILL = "kill"
    TERMINATE = "terminate"
    PAUSE = "pause"
    ZOMBIE = "zombie"


KINDS = (
    *((action, target) for target in Target for action in (Action.KILL, Action.TERMINATE, Action.PAUSE)),
    (Action.ZOMBIE, Target.WORKER),
)

PHASE_SECONDS = (4.0, 9.0)
QUIET_SHARE = 0.3
BETWEEN_SECONDS = (0.5, 4.0)
#: A broker needs some seconds until it serves again; more of its faults would be one long outage.
BROKER_PAUSE_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class Step:
    """One fault: when it begins, in seconds from the start; `seconds` is how long one sleeps, or stays away."""

    at: float
    action: Action
    target: Target
    seconds: float
    choice: int

    def __str__(self) -> str:
        return f"{self.at:.1f} s: {self.action.value} {self.target.value} ({self.seconds:.1f} s)"


def plan(seed: int, seconds: float) -> list[Step]:
    """The faults of a soak of so many seconds."""
    steps: list[Step] = []
    broker_free = 0.0
    for step in _all(random.Random(seed), seconds):
        if step.target is Target.BROKER:
            if step.at < broker_free:
                continue
            broker_free = step.at + BROKER_PAUSE_SECONDS
        steps.append(step)
    return steps


def _all(chance: random.Random, seconds: float) -> Iterator[Step]:
    begin = chance.uniform(1.0, 3.0)
    while begin < seconds:
        end = begin + chance.uniform(*PHASE_SECONDS)
        mix = [] if chance.random() < QUIET_SHARE else chance.sample(KINDS, chance.randint(1, 4))
        at = begin + chance.uniform(*BETWEEN_SECONDS)
        while mix and at < min(end, seconds):
            action, target = chance.choice(mix)
            away = chance.choice((chance.uniform(0.0, 0.5), chance.uniform(0.5, 3.0), chance.uniform(3.0, 9.0)))
            yield Step(at, action, target, away, chance.randrange(1_000))
            at += chance.uniform(*BETWEEN_SECONDS)
        begin = end
