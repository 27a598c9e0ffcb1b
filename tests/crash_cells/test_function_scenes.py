"""Workers are hit in functions of every operator, and in drains: nothing is lost, doubled, or told a second time."""

from __future__ import annotations

import pytest

from tests.crash_cells.function_scenes import (
    DRAINED_ARMS,
    DRAINED_FUNCTION_CELLS,
    FUNCTION_CELLS,
    FunctionCell,
    drain,
    drain_hit_in_function,
    drain_with_a_fallen_driver,
    hit_in_function,
)
from tests.crash_cells.judge import judge
from tests.crash_cells.rig import Rig
from tests.crash_cells.tiered import tiered
from twopc.faults.armed_faults import ArmedFault

pytestmark = pytest.mark.drill


@pytest.fixture
def rig(rig: Rig) -> Rig:
    rig.add_every_operator()
    return rig


@pytest.mark.parametrize("cell", tiered(FUNCTION_CELLS))
def test_a_worker_is_hit_in_a_function(rig: Rig, cell: FunctionCell) -> None:
    hit_in_function(rig, cell)
    assert judge(rig) == []


@pytest.mark.proof
@pytest.mark.parametrize("cell", DRAINED_FUNCTION_CELLS, ids=str)
def test_a_worker_is_hit_in_a_function_that_only_a_drain_calls(rig: Rig, cell: FunctionCell) -> None:
    drain_hit_in_function(rig, cell)
    assert judge(rig) == []


@pytest.mark.parametrize(
    "arm",
    [
        pytest.param(arm, id=arm.point.name.lower(), marks=pytest.mark.proof if number else ())
        for number, arm in enumerate(DRAINED_ARMS)
    ],
)
def test_a_worker_is_killed_when_what_a_drain_made_is_not_yet_committed(rig: Rig, arm: ArmedFault) -> None:
    drain(rig, arm)
    assert judge(rig) == []


def test_a_drain_whose_driver_is_killed_half_way_is_ended_by_the_next_one(rig: Rig) -> None:
    drain_with_a_fallen_driver(rig)
    assert judge(rig) == []
