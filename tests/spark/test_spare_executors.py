"""When executors that are spare are warmed, and with how many tasks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twopc.spark.slots import SlotWatch, Spare
from twopc.spark.spare_executors import MOST_TASKS, Warmth


def spare(*executors: str, slots: int = 2, beside_others: bool = True) -> Spare:
    return Spare(slots, frozenset(executors), beside_others)


def tasks(*looks: Spare) -> list[int]:
    warmth = Warmth()
    return [warmth.tasks(each) for each in looks]


def test_what_is_spare_at_two_looks_is_warmed_once() -> None:
    assert tasks(*[spare("a", "b")] * 4) == [0, 2, 0, 0]


def test_an_executor_that_comes_is_warmed_too_and_one_that_an_attempt_takes_is_nothing_new() -> None:
    assert tasks(spare("a"), spare("a"), spare("a", "b"), spare("a", "b"), spare("b"), spare("b")) == [0, 2, 0, 2, 0, 0]


def test_beside_no_attempt_or_without_a_free_slot_nothing_is_warmed() -> None:
    assert tasks(*[spare("a", beside_others=False)] * 3) == [0, 0, 0]
    assert tasks(*[spare("a", slots=0)] * 3) == [0, 0, 0]


def test_of_many_slots_a_few_are_warmed() -> None:
    assert tasks(*[spare("a", slots=1_000)] * 2) == [0, MOST_TASKS]


def test_spare_are_the_slots_that_no_task_has_and_the_executors_without_any() -> None:
    def executor(port: int, running: int) -> Any:
        return SimpleNamespace(host=lambda: "10.0.0.7", port=lambda: port, numRunningTasks=lambda: running)

    executors = [executor(1, 2), executor(2, 0), executor(3, 1)]
    context = SimpleNamespace(
        statusTracker=lambda: SimpleNamespace(getExecutorInfos=lambda: executors),
        resourceProfileManager=lambda: SimpleNamespace(defaultResourceProfile=lambda: None),
        maxNumConcurrentTasks=lambda _profile: 6,
    )
    session: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(master="yarn", _jsc=SimpleNamespace(sc=lambda: context))
    )
    assert SlotWatch(session).spare() == Spare(3, frozenset({"10.0.0.7:2"}), True)
