"""What a fault drill does, from its seed."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from twopc.drill.faults import CHECKPOINTS_APART, FaultPlan, Kind, choices, draw
from twopc.faults.armed_faults import ProcessAction
from twopc.faults.crash_table import CrashPoint

SEEDS = range(50)


def plan(seed: int, count: int = 10) -> FaultPlan:
    return draw(seed, count, tuple(Kind))


def test_the_same_seed_plays_the_same_plan() -> None:
    assert [plan(seed) for seed in SEEDS] == [plan(seed) for seed in SEEDS]


def test_another_seed_plays_another() -> None:
    assert len({plan(seed).faults for seed in SEEDS}) == len(SEEDS)


def test_no_kind_comes_twice_before_each_has_come_once() -> None:
    for seed in SEEDS:
        counts = Counter(fault.kind for fault in plan(seed, 2 * len(Kind) - 1).faults)
        assert set(counts.values()) <= {1, 2}
        assert len(counts) == len(Kind)


def test_a_broker_that_is_not_the_drills_own_is_never_struck() -> None:
    kinds = choices(own_broker=False)
    struck = {fault.kind for seed in SEEDS for fault in draw(seed, 10, kinds).faults}
    assert struck == set(Kind) - {Kind.KILL_BROKER, Kind.PAUSE_BROKER, Kind.SLOW_BROKER, Kind.EXPIRE_TRANSACTION}


def test_a_job_without_transactions_meets_no_fault_that_only_a_transaction_can_meet() -> None:
    for own_broker in (True, False):
        kinds = choices(own_broker=own_broker, transactional=False)
        faults = [fault for seed in SEEDS for fault in draw(seed, 9, kinds, transactional=False).faults]
        assert not {Kind.EXPIRE_TRANSACTION, Kind.ABORT_TRANSACTION} & {fault.kind for fault in faults}
        assert CrashPoint.IN_PRE_COMMIT_AFTER_FLUSH not in {fault.step for fault in faults}


def test_its_own_may_be_and_its_clock_does_what_the_drill_does_elsewhere() -> None:
    assert set(choices(own_broker=True)) == set(Kind) - {Kind.ABORT_TRANSACTION}
    assert Kind.ABORT_TRANSACTION in choices(own_broker=False)


def test_faults_come_one_after_the_other() -> None:
    checkpoints = [fault.checkpoint for fault in plan(7).faults]
    assert {later - earlier for earlier, later in pairwise(checkpoints)} == {CHECKPOINTS_APART}
    assert plan(7).last_checkpoint == checkpoints[-1]


def test_only_a_worker_ends_itself_all_else_is_done_while_one_waits() -> None:
    for fault in plan(3).faults:
        assert fault.arm.act is (ProcessAction.KILL if fault.kind is Kind.KILL_WORKER else ProcessAction.HOLD)


def test_no_two_faults_of_a_plan_share_a_place() -> None:
    armed = [fault.arm.name for fault in plan(3, 30).faults]
    assert len(set(armed)) == 30


@pytest.mark.parametrize("kind", [Kind.EXPIRE_TRANSACTION, Kind.ABORT_TRANSACTION, Kind.CORRUPT_CHECKPOINT])
def test_what_is_about_a_completed_checkpoint_happens_where_one_is_not_committed_yet(kind: Kind) -> None:
    steps = {fault.step for seed in SEEDS for fault in draw(seed, 1, [kind]).faults}
    assert steps == {CrashPoint.BEFORE_COMMIT}


def test_a_disk_is_full_where_a_snapshot_is_half_stored() -> None:
    assert {fault.step for seed in SEEDS for fault in draw(seed, 1, [Kind.FILL_SNAPSHOT_DISK]).faults} == {
        CrashPoint.IN_STORE
    }


def test_a_fault_says_what_it_does_at_which_step() -> None:
    (fault,) = draw(1, 1, [Kind.CUT_CONTROL]).faults
    assert str(fault).startswith(f"the control stream is cut for {fault.seconds} s at {fault.step.code} (")
