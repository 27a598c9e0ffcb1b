"""What a seed means: always the same faults, and over many seeds every fault."""

from __future__ import annotations

from tests.crash_cells.cells import OF_OTHER_SINKS
from tests.timed_faults import BROKER_ACTIONS
from tests.torture.plan import CLUSTERS, draw
from twopc.faults.armed_faults import ProcessAction
from twopc.faults.crash_table import CrashPoint, CrashSite

SEEDS = range(2_000)


def test_a_seed_draws_the_same_plan_every_time() -> None:
    assert [draw(seed) for seed in SEEDS] == [draw(seed) for seed in SEEDS]


def test_seeds_differ() -> None:
    assert len({str(draw(seed)) for seed in SEEDS}) == len(SEEDS)


def test_every_place_in_our_code_and_every_act_is_drawn_by_some_seed() -> None:
    arms = [arm for seed in SEEDS for arm in draw(seed).arms]
    ours = {point for point in CrashPoint if point.where is not CrashSite.BETWEEN}
    assert {arm.point for arm in arms} == ours - OF_OTHER_SINKS
    assert {arm.act for arm in arms} == {
        ProcessAction.KILL,
        ProcessAction.STOP,
        ProcessAction.TERM,
        ProcessAction.PAUSE,
    }


def test_both_protocols_one_and_three_brokers_and_both_fates_of_a_broker_are_drawn() -> None:
    plans = [draw(seed) for seed in SEEDS]
    assert {plan.cluster for plan in plans} == set(CLUSTERS)
    assert {(cluster.brokers, cluster.transaction_version) for cluster in CLUSTERS} == {(1, 1), (1, 2), (3, 1), (3, 2)}
    assert {fault.action for plan in plans for fault in plan.broker_faults} == set(BROKER_ACTIONS)
    assert max(fault.choice for plan in plans for fault in plan.broker_faults) == 2


def test_no_two_arms_of_a_plan_share_their_file() -> None:
    for seed in SEEDS:
        names = [f"{arm.point.name}{arm.name}-{arm.act.value}" for arm in draw(seed).arms]
        assert len(set(names)) == len(names)
