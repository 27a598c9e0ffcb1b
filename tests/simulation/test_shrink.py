"""A failing run is made small, stays a failing run, and can be played again from the one line that is printed."""

from __future__ import annotations

import json
import random

import pytest

from tests.simulation.__main__ import main
from tests.simulation.dice import Dice, Strike
from tests.simulation.every_mutant import noticing
from tests.simulation.faults import draw
from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.shrink import Case, invariant_of, shrink

pytestmark = pytest.mark.simulation

SHORT = {
    "a completion commits its own checkpoint only": 6,
    "a trigger is taken whatever its id": 6,
    "state is not restored": 6,
    "what was not stored counts as stored": 6,
    "ids are the same in every attempt": 6,
}
"""With how many strikes each of these breaks shows itself, at most."""


def mutant(what: str) -> Mutant:
    return next(each for each in MUTANTS if each.what == what)


def first_caught(broken: Mutant) -> Case:
    return broken.case(noticing(broken, 1)[0])


@pytest.mark.parametrize("what", SHORT)
def test_a_run_that_breaks_is_made_small_and_breaks_the_same_invariant(what: str) -> None:
    broken = mutant(what)
    case = first_caught(broken)
    with broken.apply():
        small = shrink(case)
        before, after = case.play(), small.play()
    assert invariant_of(after.violations[0]) == invariant_of(before.violations[0])
    assert len(after.strikes) <= min(SHORT[what], len(before.strikes))
    assert sum(small.faults.sizes) <= sum(case.faults.sizes)


def test_a_run_that_breaks_nothing_stays_as_it_is() -> None:
    case = Case(0, draw(0))
    assert shrink(case) == case


@pytest.mark.parametrize("seed", range(20))
def test_all_strikes_of_a_run_played_again_are_that_run(seed: int) -> None:
    case = Case(seed, draw(seed))
    whole = case.play(keeps_trace=True)
    again = Case(seed, case.faults, frozenset(whole.strikes)).play(keeps_trace=True)
    assert again == whole


@pytest.mark.parametrize("seed", range(20))
def test_no_more_strikes_than_are_named(seed: int) -> None:
    case = Case(seed, draw(seed))
    strikes = case.play().strikes
    some = frozenset(random.Random(seed).sample(strikes, len(strikes) // 2))
    assert set(Case(seed, case.faults, some).play().strikes) <= some


@pytest.mark.parametrize("seed", range(3))
def test_a_case_is_read_back_from_its_line(seed: int) -> None:
    faults = draw(seed, timeouts=True)
    case = Case(seed, faults, frozenset(Case(seed, faults).play().strikes))
    assert Case.from_json(case.to_json()) == case
    assert "\n" not in case.to_json()


def test_a_case_with_a_fault_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="there are no faults called thunder"):
        Case.from_json(json.dumps({"seed": 1, "faults": {"thunder": 1}, "only": None}))


def test_a_strike_is_read_back_from_its_text() -> None:
    strike = Strike("EndTxn late", "subtask-0.2", 3)
    assert Strike.parse(str(strike)) == strike


def test_what_a_strike_does_follows_from_seed_and_occasion_alone() -> None:
    alone = Dice(7, [Strike("kill", "somewhere", 2)])
    throws = [Dice(7).throw("kill", "somewhere", 0.0), alone.throw("kill", "somewhere", 0.0)]
    among = Dice(7)
    among.throw("pause", "elsewhere", 1.0)
    among.throw("kill", "somewhere", 0.0)
    assert throws == [0, 0]
    assert alone.throw("kill", "somewhere", 0.0) == among.throw("kill", "somewhere", 1.0) > 0


def test_the_command_shows_a_failing_seed_small_and_plays_its_case_again(capsys: pytest.CaptureFixture[str]) -> None:
    broken = mutant("what was not stored counts as stored")
    seed = first_caught(broken).seed
    with broken.apply():
        assert main(["--seed", str(seed)]) == 1
        shown = capsys.readouterr().out
        assert f"seed {seed} fails; made small" in shown
        case = shown.rpartition("--case '")[2].rpartition("'")[0]
        assert main(["--case", case]) == 1
    assert "VIOLATED" in capsys.readouterr().out
