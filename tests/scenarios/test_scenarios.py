"""Ten stories that a newcomer reads in place of the code; each is played again and compared, line for line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.play import play
from tests.scenarios.script import Script, read

SCENARIOS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=[path.stem for path in SCENARIOS])
def test_the_story_goes_as_it_is_told(path: Path) -> None:
    head, transcript = read(path)
    again = "if the change is meant, accept it with: python -m tests.scenarios --update"
    assert play(Script.parse(head)).splitlines() == transcript.splitlines(), again


@pytest.mark.parametrize("path", SCENARIOS, ids=[path.stem for path in SCENARIOS])
def test_no_story_breaks_an_invariant(path: Path) -> None:
    _, transcript = read(path)
    assert "INVARIANT" not in transcript


def test_there_are_ten_stories() -> None:
    assert len(SCENARIOS) >= 10
