"""The protocol under simulated faults: some thousand seeds for a change, 20,000 for a release, and what they reach.

`TWOPC_SIMULATION_SEEDS` says how many; `TWOPC_SIMULATION_FIRST` names another first seed: other seeds see what the same
ones never will.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import cache

import pytest

from coordinator.status import PHASE_CHANGES, Phase
from tests.simulation.__main__ import main
from tests.simulation.cells import PeerState
from tests.simulation.coordinator_judge import phase_change
from tests.simulation.play import SHARE, Rules, Tally, play, play_here
from tests.simulation.required_cells import cells_left_out, cells_to_reach
from tests.simulation.simulate import simulate
from twopc.faults.points import CrashPoint
from twopc.protocol.checkpoints import CheckpointKind, FailureReason

pytestmark = [pytest.mark.simulation, pytest.mark.xdist_group("all seeds")]
"""They look at one play of all seeds, which one process makes."""

FIRST = int(os.environ.get("TWOPC_SIMULATION_FIRST", "0"))
ALL = int(os.environ.get("TWOPC_SIMULATION_SEEDS", "20000"))
SEEDS = range(FIRST, FIRST + ALL * 9 // 10)
SEEDS_WITH_TIMEOUTS = range(FIRST, FIRST + ALL // 10)
NO_LOSS = Rules()
LOSSES = Rules(timeouts=True)
PROCESSES = ("coordinator", "driver", "subtask")
STOPPED_IN = (
    "Supervise",
    "Pause",
    "StartAttempt",
    "FindStanding",
    "Reach",
    "AbortLingering",
    "EndAttempt",
)
"""What a driver may be waiting for, for more than a moment, when it is told to stop."""

NOT_PLAYED = (FailureReason.CHECKPOINT_SUBSUMED, FailureReason.TOO_MANY_CHECKPOINT_REQUESTS)
"""Streams keep their order, so of two checkpoints the earlier is acknowledged first; and nobody asks that often."""

AT_LARGE = (
    "killed everything",
    "power failed",
    "bit rot",
    "crash at a write",
    "wall clock jumped",
    "second coordinator",
    "second driver",
)


@cache
def played(rules: Rules) -> Tally:
    return added_up(play(SEEDS_WITH_TIMEOUTS if rules.timeouts else SEEDS, rules))


def added_up(shares: Iterable[Tally]) -> Tally:
    tally = Tally()
    for share in shares:
        tally.add(share)
    return tally


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("rules", [NO_LOSS, LOSSES], ids=["no-transaction-expires", "transactions-expire"])
def test_every_seed_ends_with_the_output_of_its_input_exactly_once_or_with_a_loss_said_aloud(rules: Rules) -> None:
    failed = played(rules).failed
    again = [f"python -m tests.simulation --seed {seed}{rules}: {failed[seed]}" for seed in sorted(failed)]
    assert again == []


def test_losses_are_said_where_transactions_expire() -> None:
    assert played(LOSSES).lost > 0


def test_the_seeds_heal_losses() -> None:
    assert played(LOSSES).coverage["healed a loss"] > 0


def test_the_seeds_store_snapshots_where_the_coordinator_does_not_look() -> None:
    assert played(NO_LOSS).coverage["stored elsewhere"] > 0


def test_nothing_is_said_to_be_lost_where_no_transaction_expires() -> None:
    assert played(NO_LOSS).lost == 0


def test_the_seeds_come_to_every_named_place() -> None:
    coverage = played(NO_LOSS).coverage
    assert [point.name for point in CrashPoint if not coverage[f"reached {point.name}"]] == []


@pytest.mark.proof
def test_the_seeds_stop_a_process_at_every_place_with_the_others_in_every_state() -> None:
    coverage = played(NO_LOSS).coverage
    cells = [f"cell {point.name} {state.name}" for point, state in cells_to_reach()]
    assert [cell for cell in cells if not coverage[cell]] == []


def test_every_cell_must_be_reached_or_is_left_out_for_a_reason() -> None:
    every = {(point, state) for point in CrashPoint for state in PeerState}
    listed = cells_to_reach() + cells_left_out()
    assert len(listed) == len(set(listed))
    assert set(listed) == every


def test_the_seeds_strike_every_kind_of_process_by_chance_and_the_machine_too() -> None:
    wanted = [f"{what} {kind}" for what in ("killed", "paused") for kind in PROCESSES]
    coverage = played(NO_LOSS).coverage
    assert [each for each in (*wanted, *AT_LARGE) if not coverage[each]] == []


def test_the_seeds_have_the_broker_restart_and_its_coordinator_move() -> None:
    wanted = ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR")
    coverage = played(NO_LOSS).coverage
    assert [each for each in wanted if not coverage[f"broker {each}"]] == []


def test_the_phases_of_a_job_change_in_all_ways_that_the_table_says() -> None:
    coverage = played(NO_LOSS).coverage
    changes = [change for change in PHASE_CHANGES if change.after is not Phase.FENCED]
    names = [phase_change(change.before.name, change.after.name) for change in changes]
    assert [name for name in names if not coverage[name]] == []


def test_a_coordinator_finds_itself_fenced_in_some_phase() -> None:
    coverage = played(NO_LOSS).coverage
    assert any(coverage[phase_change(before.name, Phase.FENCED.name)] for before in Phase)


def test_the_seeds_abort_checkpoints_for_every_reason_that_their_streams_leave_room_for() -> None:
    coverage = played(NO_LOSS).coverage
    reasons = [reason for reason in FailureReason if reason not in NOT_PLAYED]
    assert [reason for reason in reasons if not coverage[f"aborted: {reason}"]] == []


def test_the_seeds_have_savepoints_taken_and_jobs_drained() -> None:
    coverage = played(NO_LOSS).coverage
    wanted = ("asked to drain", *(f"completed: {kind}" for kind in CheckpointKind))
    assert [each for each in wanted if not coverage[each]] == []


@pytest.mark.parametrize(
    "what",
    [
        "declined as the first group",
        "declined as a later group",
        "crash between the commits of two groups",
        "a sink taken out",
        "a sink that was taken out put back",
        "restarts exhausted",
    ],
)
def test_the_seeds_come_to_what_only_several_sinks_and_people_bring_about(what: str) -> None:
    assert played(NO_LOSS).coverage[what] > 0


def test_the_seeds_find_new_input_while_the_job_runs() -> None:
    assert played(NO_LOSS).coverage["new input found"] > 0


def test_the_seeds_rescale_a_job_while_it_runs() -> None:
    assert played(NO_LOSS).coverage["rescaled"] > 0


def test_the_seeds_stop_a_driver_whatever_it_waits_for() -> None:
    coverage = played(NO_LOSS).coverage
    assert [state for state in STOPPED_IN if not coverage[f"stopped in {state}"]] == []


@pytest.mark.parametrize("what", ["forgot ids", "topic recreated", "input recreated", "input deleted"])
def test_the_broker_forgets_where_something_may_be_lost(what: str) -> None:
    assert played(LOSSES).coverage[f"broker {what}"] > 0


@pytest.mark.parametrize("seed", [3, 20, 151])
def test_a_seed_plays_the_same_run_every_time(seed: int) -> None:
    first, second = simulate(seed), simulate(seed)
    assert len(first.trace) > 20
    assert first == second


def test_two_seeds_play_different_runs() -> None:
    assert simulate(1).trace != simulate(2).trace


def test_seeds_come_to_the_same_in_several_processes_as_in_one() -> None:
    seeds = range(SHARE + 20)
    here, there = play_here(seeds, LOSSES), added_up(play(seeds, LOSSES, processes=2))
    assert (here.played, here.lost, here.failed) == (there.played, there.lost, there.failed)
    assert here.coverage == there.coverage


def test_the_command_says_how_many_seeds_it_played_and_how_fast(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--first", "1", "--seeds", "2"]) == 0
    assert capsys.readouterr().out.startswith("2 seeds, 0 failed")


def test_the_command_sums_up_for_a_machine_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--first", "1", "--seeds", "2", "-o", "json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["played"], summary["failed"], summary["interrupted"]) == (2, {}, False)


def test_the_command_shows_the_trace_of_one_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "0"]) == 0
    output = capsys.readouterr().out
    assert "coordinator-1" in output
    assert "COMPLETION RECORD" in output
    assert "again with: python -m tests.simulation --case" in output
