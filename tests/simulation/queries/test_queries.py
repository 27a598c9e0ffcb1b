"""Queries of both kinds in every order of two drivers, and in drawn orders of four: readers see each row once."""

from __future__ import annotations

from itertools import product

import pytest

from tests.simulation.queries.driver import Driver, FormatDriver
from tests.simulation.queries.plays import (
    PIECES,
    drawn_and_finished,
    expired,
    in_one_session,
    is_exact_or_told,
    killed_twice,
    met,
    without_planner,
    woken,
)

SEEDS = range(600)
THIRD = 3
"""The run that comes to the end, where two were killed."""

Kind = type[Driver]
BOTH = pytest.mark.parametrize("kind", [Driver, FormatDriver])


def test_a_play_is_longer_than_its_drivers() -> None:
    for kind in (Driver, FormatDriver):
        world = killed_twice(kind, PIECES - 1, 0)
        assert world.committed_batches == world.batches
        assert {made.run for made in world.decisions.values()} == {1}


@BOTH
def test_a_driver_killed_at_any_moment_and_the_next_one_at_any_other_leave_every_row_once(kind: Kind) -> None:
    for first, second in product(range(PIECES), repeat=2):
        world = killed_twice(kind, first, second)
        assert world.is_exact_at_once, (first, second)
        if kind is Driver and max(world.decisions.values(), key=lambda made: made.batch).run == THIRD:
            assert world.brokers.open_ids() == [], "the driver that decided the last batch leaves nothing open"


@BOTH
def test_two_drivers_that_meet_at_any_moment_write_every_row_once(kind: Kind) -> None:
    for first, second in product(range(PIECES), repeat=2):
        assert met(kind, first, second).is_exact_at_once, (first, second)


@BOTH
def test_tasks_that_were_taken_for_dead_may_wake_at_any_moment(kind: Kind) -> None:
    for first, second in product(range(PIECES), repeat=2):
        assert woken(kind, first, second).is_exact_at_once, (first, second)


def test_what_commits_may_die_at_any_moment_and_spark_tell_another_process_to_abort() -> None:
    for pieces in range(PIECES):
        assert without_planner(FormatDriver, pieces).is_exact_at_once, pieces


@BOTH
def test_a_driver_that_wakes_does_no_harm_to_a_query_that_was_started_again_with_its_workers(kind: Kind) -> None:
    for seed in SEEDS:
        assert in_one_session(kind, seed).is_exact_at_once, seed


@BOTH
def test_drivers_in_any_order_write_every_row_once(kind: Kind) -> None:
    for seed in SEEDS:
        assert drawn_and_finished(kind, seed).is_exact_at_once, seed


@BOTH
def test_every_row_is_written_once_where_requests_and_answers_are_lost(kind: Kind) -> None:
    for seed in SEEDS:
        assert drawn_and_finished(kind, seed, silent=True).is_exact_at_once, seed


@BOTH
def test_a_loss_heals_where_the_transaction_that_is_committed_first_expires_at_any_moment(kind: Kind) -> None:
    for pieces in range(PIECES):
        assert expired(kind, pieces).is_exact, pieces


@BOTH
def test_every_row_is_written_once_or_its_loss_is_told_where_transactions_expire(kind: Kind) -> None:
    for seed in SEEDS:
        assert is_exact_or_told(kind, seed), seed
