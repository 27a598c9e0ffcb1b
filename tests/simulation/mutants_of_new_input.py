"""Breaks of what is done about splits that come while the job runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import twopc.driver.machine
from tests.simulation.mutants import Mutant, instead
from twopc.driver.input_watch import InputWatch
from twopc.driver.recovery import Planner
from twopc.errors import Fenced
from twopc.protocol.checkpoints import NONE

_plan: Callable[..., Any] = Planner.plan


def _plan_what_is_known(planner: Any, *arguments: Any, **how: Any) -> Any:
    """Plan no split that no attempt of this run has had before, but for the first attempt."""
    before = set(planner._starts)
    splits = yield from _plan(planner, *arguments, **how)
    return [split for split in splits if not before or split.id in before]


GROWS = {
    "input_grows_ms": 500,
    "other_sizes": (8, 4),
    "sizes": (8,),
    "fault_phase_ms": 2_000,
    "stopped_every_ms": 0,
    "second_driver_every_ms": 0,
}

MUTANTS_OF_NEW_INPUT = (
    Mutant("what was found is not read", instead(InputWatch, "look", lambda *_: None), GROWS, 300),
    Mutant("another attempt does not plan what is new", instead(Planner, "plan", _plan_what_is_known), GROWS, 300),
    Mutant(
        "new input counts as a failure",
        instead(twopc.driver.machine, "PlannedRestart", Fenced),
        GROWS | {"restart_attempts": 0},
        300,
    ),
    Mutant("new input makes the job begin anew", instead(twopc.driver.machine, "LATEST", NONE), GROWS, 300),
)
