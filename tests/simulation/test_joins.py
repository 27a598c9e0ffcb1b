"""Jobs that join, under simulated faults: every place of the order in which records meet, and what judges them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.faults import draw
from tests.simulation.joins import JOBS, OPEN, SOME_SINKS, STREAMS, TABLE, TOLD, JoinJob, joined_of
from tests.simulation.joins_model import determined, ends_that_make, events_of
from tests.simulation.shrink import Case
from tests.simulation.test_jobs_of_a_kind import SEEDS, played_well, share_of

pytestmark = pytest.mark.simulation

SIZES = ((12,), (9,), (12, 10))


def joins_case(seed: int) -> Case:
    """A seed's faults, on a job that joins: each in its turn, read by one subtask or by several."""
    sizes = SIZES[seed % len(SIZES)]
    job: dict[str, Any] = {
        "joins": JOBS[seed % len(JOBS)],
        "sizes": sizes,
        "other_sizes": sizes[::-1],
        "input_grows_ms": 0,
    }
    job["fault_phase_ms"] = 2_000
    return Case(seed, replace(draw(seed), **job, sinks=SOME_SINKS[seed // len(JOBS) % len(SOME_SINKS)]))


@pytest.mark.timeout(900)
def test_what_is_joined_and_asked_for_is_written_once_in_an_order_that_is_allowed() -> None:
    results = played_well(map(joins_case, SEEDS))
    assert share_of(results, "batch cut") > 0.05
    assert share_of(results, "killed subtask") > 0.05


def test_seeds_draw_all_jobs_that_join() -> None:
    drawn = {faults.joins for faults in map(draw, range(10_000)) if joined_of(faults) is not None}
    assert drawn == set(JOBS)


def output_of(joined: JoinJob) -> list[str]:
    return determined(*events_of(6, 6, 3), joined)[1]


def is_allowed(output: Sequence[str], joined: JoinJob, *, whole: bool = True) -> bool:
    return any(True for _ in ends_that_make(output, *events_of(6, 6, 3), joined, whole=whole))


@pytest.mark.parametrize(("what", "how"), sorted({job[:2] for job in JOBS}))
def test_the_order_of_event_time_is_one_of_those_that_are_allowed(what: str, how: str) -> None:
    output = output_of(JoinJob(what, how, TOLD))
    assert is_allowed(output, JoinJob(what, how, OPEN))
    assert is_allowed(output[:-1], JoinJob(what, how, OPEN), whole=False)


def test_no_order_lets_a_table_go_back() -> None:
    joined = JoinJob(TABLE, "left", OPEN)
    assert is_allowed(["0:0", "2:-", "3:0", "4:-", "5:-"], joined)
    assert is_allowed(["0:0", "2:-", "3:-", "4:4", "5:5"], joined)
    assert not is_allowed(["0:-", "2:2", "3:-", "4:-", "5:-"], joined)


def test_no_order_makes_a_pair_twice_or_loses_one() -> None:
    joined = JoinJob(STREAMS, "inner", OPEN)
    output = output_of(joined)
    assert output[0] == "0:0"
    assert not is_allowed([output[0], *output], joined)
    assert not is_allowed(output[1:], joined)
