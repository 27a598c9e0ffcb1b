"""The protocol under simulated faults: a fixed range of seeds in every quick run, and what the range has to reach."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from twopc.crashpoints import CrashPoint
from twopc.testing.simulation.__main__ import main
from twopc.testing.simulation.run import Result, simulate

pytestmark = pytest.mark.simulation

SEEDS = range(300)
PROCESSES = ("coordinator", "driver", "subtask")


@cache
def played() -> tuple[Result, ...]:
    return tuple(simulate(seed, timeouts=seed % 4 == 3, keeps_trace=False) for seed in SEEDS)


def test_every_seed_ends_with_the_output_of_its_input_exactly_once_or_with_a_loss_said_aloud() -> None:
    assert {result.seed: result.violations for result in played() if result.violations} == {}


@pytest.mark.parametrize("seed", [530, 1580, 1605, 1797])
def test_what_is_committed_is_not_said_to_be_lost(seed: int) -> None:
    assert simulate(seed, keeps_trace=False).violations == ()


def test_losses_are_said_where_transactions_expire_and_only_there() -> None:
    assert {result.seed % 4 for result in played() if result.lost} == {3}


def test_the_seeds_kill_a_process_at_every_named_place() -> None:
    coverage = covered()
    assert [point.name for point in CrashPoint if not coverage[f"crash {point.name}"]] == []


def test_the_seeds_pause_a_process_at_every_named_place() -> None:
    coverage = covered()
    assert [point.name for point in CrashPoint if not coverage[f"pause {point.name}"]] == []


def test_the_seeds_kill_and_pause_every_kind_of_process_by_chance_and_run_two_coordinators() -> None:
    wanted = [f"{what} {kind}" for what in ("killed", "paused") for kind in PROCESSES]
    coverage = covered()
    assert [each for each in (*wanted, "killed everything", "second coordinator") if not coverage[each]] == []


@pytest.mark.parametrize("seed", [3, 20, 151])
def test_a_seed_plays_the_same_run_every_time(seed: int) -> None:
    first, second = simulate(seed), simulate(seed)
    assert len(first.trace) > 20
    assert first == second


def test_two_seeds_play_different_runs() -> None:
    assert simulate(1).trace != simulate(2).trace


def test_the_command_says_how_many_seeds_it_played_and_how_fast(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--first", "1", "--seeds", "2"]) == 0
    assert capsys.readouterr().out.startswith("2 seeds, 0 failed")


def test_the_command_shows_the_trace_of_one_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "0"]) == 0
    output = capsys.readouterr().out
    assert "coordinator-1" in output
    assert "COMPLETION RECORD" in output
    assert "again with: python -m twopc.testing.simulation --seed 0" in output


def covered() -> Counter[str]:
    return sum((result.coverage for result in played()), Counter())
