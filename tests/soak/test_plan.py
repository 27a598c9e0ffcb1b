"""The plan of a soak is data: the same for the same seed, different for others, with every kind and quiet in it."""

from __future__ import annotations

from itertools import pairwise

from tests.soak.plan import BROKER_PAUSE_SECONDS, KINDS, plan
from tests.timed_faults import Target


def test_the_same_seed_plans_the_same_faults_and_another_seed_others() -> None:
    assert plan(7, 60) == plan(7, 60)
    assert plan(7, 60) != plan(8, 60)


def test_a_longer_soak_begins_as_a_shorter_one_does() -> None:
    assert plan(7, 120)[: len(plan(7, 60))] == plan(7, 60)


def test_every_kind_of_fault_is_planned_sooner_or_later() -> None:
    planned = {(step.action, step.target) for seed in range(50) for step in plan(seed, 60)}
    assert planned == set(KINDS)


def test_a_minute_has_many_faults_and_seconds_without_any() -> None:
    for seed in range(50):
        times = [step.at for step in plan(seed, 60)]
        assert times == sorted(times)
        assert len(plan(seed, 600)) > 60
    longest = [max(two - one for one, two in pairwise(step.at for step in plan(seed, 600))) for seed in range(50)]
    assert min(longest) > 8


def test_a_broker_is_left_alone_until_it_can_serve_again() -> None:
    for seed in range(50):
        times = [step.at for step in plan(seed, 600) if step.target is Target.BROKER]
        assert all(two - one >= BROKER_PAUSE_SECONDS for one, two in pairwise(times))
