"""A fault that lasts ends once: when its time has come, or with all others."""

from __future__ import annotations

from twopc.faults.reversals import Reversals


def test_a_fault_ends_when_its_time_has_come_and_once() -> None:
    ended: list[str] = []
    reversals = Reversals()
    reversals.after(0.0, lambda: ended.append("short"))
    reversals.after(3_600.0, lambda: ended.append("long"))
    reversals.run()
    reversals.run()
    assert ended == ["short"]


def test_all_faults_end_at_once_where_everything_is_to_end() -> None:
    ended: list[str] = []
    reversals = Reversals()
    reversals.after(3_600.0, lambda: ended.append("long"))
    reversals.run(everything=True)
    reversals.run(everything=True)
    assert ended == ["long"]


def test_an_action_that_ends_one_fault_may_begin_another() -> None:
    ended: list[str] = []
    reversals = Reversals()
    reversals.after(0.0, lambda: reversals.after(0.0, lambda: ended.append("second")))
    reversals.run()
    assert ended == []
    reversals.run()
    assert ended == ["second"]
