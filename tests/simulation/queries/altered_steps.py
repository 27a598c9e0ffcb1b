"""Steps of which some are done otherwise: how a driver is broken on purpose."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from twopc.errors import TwoPhaseCommitError
from twopc.spark.streaming.decision import Decision
from twopc.spark.streaming.steps import Step, Steps

Altered = Generator[Step, Any, Any]
Alter = Callable[[Step], Altered]
"""Takes a step and yields what is done instead; returns what the driver is told."""


def altered(steps: Steps, alter: Alter) -> Steps:
    """The steps of a driver that does something else."""
    step = next(steps)
    while True:
        try:
            answer = yield from alter(step)
        except TwoPhaseCommitError as error:
            step = steps.throw(error)
            continue
        try:
            step = steps.send(answer)
        except StopIteration as ended:
            decision: Decision = ended.value
            return decision


def as_it_is(step: Step) -> Altered:
    return (yield step)
