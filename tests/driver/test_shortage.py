"""When it is said what subtasks wait for."""

from __future__ import annotations

from twopc.driver.supervision import SHORTAGE_AGAIN_SECONDS, SHORTAGE_PATIENCE_SECONDS, Shortage


def said_within(lacks: str | None, seconds: float) -> list[str | None]:
    shortage = Shortage()
    return [lacks for second in range(int(seconds) + 1) if shortage.worth_saying(lacks, 100.0 + second)]


def test_a_shortage_that_passes_soon_is_not_worth_a_word() -> None:
    assert said_within("slots", SHORTAGE_PATIENCE_SECONDS - 1) == []


def test_a_shortage_is_said_again_while_it_lasts() -> None:
    assert said_within("slots", SHORTAGE_PATIENCE_SECONDS + 2 * SHORTAGE_AGAIN_SECONDS) == ["slots"] * 3


def test_a_stage_that_lacks_nothing_is_not_spoken_of() -> None:
    assert said_within(None, 100) == []


def test_a_shortage_that_changes_is_said_at_once() -> None:
    shortage = Shortage()
    assert [second for second in range(8) if shortage.worth_saying("2 slots", 100.0 + second)] == [5]
    assert shortage.worth_saying("1 slot", 108.0)
