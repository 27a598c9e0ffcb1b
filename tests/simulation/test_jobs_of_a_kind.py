"""Jobs of kinds that the seeds draw rarely, under simulated faults: a share of the seeds with nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from tests.simulation.bad_records import DEAD
from tests.simulation.faults import TIMED, TIMED_SINKS, draw
from tests.simulation.mutants_of_stages import GOING_BACK, OWN_TOPIC
from tests.simulation.patches import replaced
from tests.simulation.shrink import Case
from tests.simulation.simulate import Result
from tests.simulation.test_simulation import ALL, FIRST

pytestmark = pytest.mark.simulation

SEEDS = range(FIRST, FIRST + ALL // 20)
SEEDS_WITH_TIME = range(FIRST, FIRST + ALL // 66)


def played_well(cases: Iterable[Case]) -> list[Result]:
    """Play cases; return how they went, if nothing was violated in any."""
    with replaced():
        results = [(case, case.play()) for case in cases]
    assert [f"{case.to_json()}: {each.violations[0]}" for case, each in results if each.violations] == []
    return [each for _, each in results]


def share_of(results: Sequence[Result], what: str) -> float:
    """The share of the runs that came to this."""
    return sum(each.coverage[what] > 0 for each in results) / len(results)


@pytest.mark.timeout(600)
def test_records_and_timers_that_go_wrong_are_dead_letters_once_and_all_others_go_on() -> None:
    results = played_well(map(bad_records_case, SEEDS))
    assert share_of(results, "batch cut") > 0.1


@pytest.mark.timeout(600)
def test_what_a_job_has_itself_written_is_read_once_and_to_its_end() -> None:
    results = played_well(map(own_topic_case, SEEDS))
    assert share_of(results, "a later stage told to end") > 0.5


@pytest.mark.timeout(600)
def test_a_job_that_goes_back_counts_each_record_once_though_an_abandoned_course_wrote_it_before() -> None:
    results = played_well(map(going_back_case, SEEDS))
    assert share_of(results, "passed over") > 0.1
    assert share_of(results, "trimmed") > 0.05
    assert share_of(results, "left to read besides") > 0.08


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", TIMED)
def test_what_waits_for_its_time_comes_out_once_when_that_has_come_and_a_drain_lets_it_pass(kind: str) -> None:
    results = played_well(timed_case(kind, seed) for seed in SEEDS_WITH_TIME)
    assert share_of(results, "asked to drain") > 0.33
    assert share_of(results, "drained before the end of the input") > 0.03


def timed_case(kind: str, seed: int) -> Case:
    """A seed's faults, on a job in which event time passes; every other one has no end but a drain."""
    drawn = draw(seed)
    faults = replace(drawn, drained=True, asked_every_ms=150) if seed % 2 else drawn
    faults = replace(faults, timed=kind, sinks=TIMED_SINKS[seed // 2 % len(TIMED_SINKS)])
    return Case(seed, replace(faults, sizes=(14, 11), other_sizes=(), input_grows_ms=0, commits_globally=False))


def own_topic_case(seed: int) -> Case:
    """A seed's faults, on the job that reads what it has itself written, in the same transaction as its output."""
    faults = OWN_TOPIC | {"sinks": ("own", "out") if seed % 2 else ("out", "own")}
    return Case(seed, replace(draw(seed), **faults))


def going_back_case(seed: int) -> Case:
    """A seed's faults, on the job that reads what it has itself written, and that goes back every now and then."""
    case = own_topic_case(seed)
    return replace(case, faults=replace(case.faults, **GOING_BACK))


def bad_records_case(seed: int) -> Case:
    """A seed's faults, on the job whose records go wrong; every third has files beside."""
    sinks = ("out", "files", DEAD) if seed % 3 == 0 else ("out", DEAD)
    return Case(seed, replace(draw(seed), sinks=sinks, other_sizes=(), sizes=(14, 11), input_grows_ms=0))
