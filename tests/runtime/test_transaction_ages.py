"""Since when the oldest transaction of a subtask has been open."""

from __future__ import annotations

from collections.abc import Callable

from tests.runtime.kit import Stage, complete, trigger
from twopc.clock import ManualClock
from twopc.protocol.figures import OLDEST_TRANSACTION
from twopc.protocol.messages import Progress
from twopc.runtime.transaction_ages import TransactionAges


def test_a_transaction_keeps_its_age_when_it_is_pre_committed_and_goes_when_it_is_committed() -> None:
    ages = TransactionAges()
    assert ages.oldest([]) is None
    ages.begun(1_000)
    assert ages.oldest([]) == 1_000
    ages.pre_committed(["a"])
    ages.begun(2_000)
    ages.pre_committed(["b"])
    ages.begun(3_000)
    assert ages.oldest(["a", "b"]) == 1_000
    assert ages.oldest(["b"]) == 2_000
    assert ages.oldest([]) == 3_000


def test_a_subtask_tells_of_what_is_not_committed_yet(make: Callable[..., Stage]) -> None:
    clock = ManualClock(1_000_000)
    stage = make([[b"a"], [b"b"]], clock=clock)
    began = clock.now().unix_ms
    stage.subtask.begin()
    stage.steps(1)
    clock.advance(5_000)
    trigger(stage, 1)
    stage.steps(1)
    clock.advance(5_000)
    complete(stage, 1)
    stage.steps(2)
    clock.advance(5_000)
    stage.steps(1)
    counted = [report.figures or {} for report in stage.sent(Progress)]
    told = [value for figures in counted for _, value in OLDEST_TRANSACTION.values_in(figures)]
    assert told[:2] == [began, began]
    assert told[-1] > began
