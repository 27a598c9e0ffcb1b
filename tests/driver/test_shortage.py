from __future__ import annotations

from twopc.driver.shortage import PATIENCE_SECONDS, SAY_AGAIN_SECONDS, Shortage


class Waiting:
    """A stage whose subtasks wait for this."""

    def __init__(self, shortage: str | None) -> None:
        self.lacks = shortage

    def shortage(self) -> str | None:
        return self.lacks

    def wait(self, timeout: float) -> bool:
        return False

    def drain(self, timeout: float) -> None:
        pass

    def error(self) -> None:
        return None

    def has_said_why(self) -> bool:
        return False

    def kill(self) -> None:
        pass


def said_within(stage: Waiting, seconds: float) -> list[str]:
    said: list[str] = []
    shortage = Shortage(stage, said.append)
    for second in range(int(seconds) + 1):
        shortage.look(100.0 + second)
    return said


def test_a_shortage_that_passes_soon_is_not_worth_a_word() -> None:
    assert said_within(Waiting("slots"), PATIENCE_SECONDS - 1) == []


def test_a_shortage_is_said_again_while_it_lasts() -> None:
    assert said_within(Waiting("slots"), PATIENCE_SECONDS + 2 * SAY_AGAIN_SECONDS) == ["slots"] * 3


def test_a_stage_that_lacks_nothing_is_not_spoken_of() -> None:
    assert said_within(Waiting(None), 100) == []


def test_a_shortage_that_changes_is_said_at_once() -> None:
    stage, said = Waiting("2 slots"), list[str]()
    shortage = Shortage(stage, said.append)
    for second in range(8):
        shortage.look(100.0 + second)
    stage.lacks = "1 slot"
    shortage.look(108.0)
    assert said == ["2 slots", "1 slot"]
