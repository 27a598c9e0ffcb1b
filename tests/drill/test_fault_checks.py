"""Whether every fault of a plan struck: one that did not proves nothing, and the drill says which and why."""

from __future__ import annotations

from typing import Any, cast

from twopc.drill.fault_checks import judge_faults
from twopc.drill.fault_injector import FaultInjector
from twopc.drill.faults import Kind, draw
from twopc.drill.transaction_faults import NOTHING_OPEN
from twopc.drill.verdict import CheckVerdict

FAULTS = draw(1, 3, [Kind.KILL_DRIVER, Kind.CUT_CONTROL, Kind.ABORT_TRANSACTION]).faults


def injector() -> FaultInjector:
    return FaultInjector(cast(Any, None), "job", cast(Any, None), None, lambda _: None)


def test_a_plan_whose_faults_all_struck_held() -> None:
    done = injector()
    done.done += FAULTS
    assert judge_faults(done, FAULTS).verdict is CheckVerdict.HELD


def test_each_fault_that_did_not_strike_is_named_with_its_step_and_why() -> None:
    done = injector()
    done.done.append(FAULTS[0])
    done.missed[2] = NOTHING_OPEN
    check = judge_faults(done, FAULTS)
    assert check.verdict is CheckVerdict.MISSED
    assert check.findings == (
        f"missed: {FAULTS[1]}: no subtask came to {FAULTS[1].step.code} any more",
        f"missed: {FAULTS[2]}: {NOTHING_OPEN}",
    )


def test_what_to_change_is_said() -> None:
    said = judge_faults(injector(), FAULTS).text
    assert said.startswith("3 of 3 faults did not strike")
    assert all(option in said for option in ("--records", "--checkpoint-interval", "--faults", "--seed"))
