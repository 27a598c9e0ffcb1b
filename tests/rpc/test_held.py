"""The word of a commit waits for company, and not for long."""

from __future__ import annotations

import pytest

from twopc.protocol.ids import CheckpointId
from twopc.protocol.messages import Committed, Decline, EndOfInput, ToCoordinator, Trigger
from twopc.rpc import held
from twopc.rpc.held import Held, held_for

SECONDS = 0.1


class Clock:
    """As the module `time`."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(held, "time", made)
    return made


def committed(number: int) -> Committed:
    return Committed(CheckpointId(number))


def test_it_is_due_so_long_after_the_first_of_those_that_it_stands_for(clock: Clock) -> None:
    link = Held(SECONDS)
    assert link.hold(committed(1))
    clock.now = SECONDS / 2
    assert link.hold(committed(2))
    due = [link.is_due]
    clock.now = SECONDS
    due.append(link.is_due)
    assert (link.take(), link.take()) == (committed(2), None)
    assert [*due, link.is_due] == [False, True, False]


@pytest.mark.parametrize("message", [EndOfInput(), Decline(CheckpointId(2), "no room")])
def test_nothing_else_waits(message: ToCoordinator) -> None:
    assert not Held(SECONDS).hold(message)


def test_nothing_waits_once_the_end_has_begun() -> None:
    link = Held(SECONDS)
    link.heard(Trigger(CheckpointId(1)))
    assert link.hold(committed(1))
    link.heard(Trigger(CheckpointId(2), final=True))
    link.heard(Trigger(CheckpointId(3)))
    assert not link.hold(committed(2))
    assert link.take() == committed(1)


@pytest.mark.parametrize(("interval_ms", "seconds"), [(20, 0.02), (100, 0.1), (250, 0.25), (251, 0.0), (1_000, 0.0)])
def test_it_waits_only_where_the_next_checkpoint_is_near(interval_ms: int, seconds: float) -> None:
    assert held_for(interval_ms) == seconds
    assert Held(held_for(interval_ms)).hold(committed(1)) == (seconds > 0)
