"""The promises of the protocol hold in random lives of a job; each is replayed by its seed."""

from __future__ import annotations

from collections import Counter

import pytest

from coordinator.ledger import Ledger
from tests.coordinator.kit import JOB
from tests.coordinator.lives import STEPS, Life
from twopc import events

LIVES = 80


@pytest.mark.parametrize("seed", range(LIVES))
def test_the_promises_hold_in_random_lives(seed: int) -> None:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()
    life.settle()
    assert all(subtask.ended for subtask in life.subtasks), "the job must finish without faults"
    newest = Ledger(JOB, life.disk).state.newest
    assert newest is not None
    assert newest.record.kind == "final"
    assert not newest.outstanding
    assert all(subtask.committed[-1] == newest.checkpoint_id for subtask in life.subtasks)
    life.judge.check_what_is_kept()
    for judge in life.judges:
        assert all(count == 1 for count in judge.answers.values()), "a request was answered twice"
    assert life.judge.asked <= set(life.judge.answers), "a request was never answered"


def test_random_lives_reach_what_they_are_meant_to_reach() -> None:
    told: Counter[str] = Counter()
    for seed in range(30):
        life = Life(seed)
        for _ in range(STEPS):
            life.step()
        for event in (event for judge in life.judges for event in judge.events):
            told[event.name] += 1
            if isinstance(event, events.CheckpointEvent):
                told[f"{event.name} {getattr(event, 'reason', event.kind)}"] += 1
    wanted = {
        "attempt-started",
        "subtask-detached",
        "checkpoint-confirmed",
        "attempt-failed",
        "attempt-fenced",
        "checkpoint-declined",
        "checkpoint-aborted CHECKPOINT_DECLINED",
        "checkpoint-aborted CHECKPOINT_EXPIRED",
        "checkpoint-aborted CHECKPOINT_SUBSUMED",
        "checkpoint-aborted IO_EXCEPTION",
        "checkpoint-aborted FINALIZE_CHECKPOINT_FAILURE",
        "checkpoint-aborted JOB_FAILURE",
        "checkpoint-aborted CHECKPOINT_COORDINATOR_SUSPEND",
        "checkpoint-completed periodic",
        "checkpoint-completed manual",
        "checkpoint-completed savepoint",
    }
    assert not wanted - set(told), "the lives are too tame"
