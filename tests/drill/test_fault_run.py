"""A fault drill's play: who is started again, when a fault strikes, and when it is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from tests.stored_job import StoredJob
from twopc.drill.fault_injector import FaultInjector
from twopc.drill.fault_run import play
from twopc.drill.faults import Fault, Kind, draw
from twopc.drill.supervisor import Supervisor
from twopc.drill.transaction_faults import NOTHING_OPEN, expire_one
from twopc.errors import TransactionLost
from twopc.kafka.transactions.resume import SettleAction
from twopc.protocol.facts import Committable
from twopc.sink import Outcome, Settled

KILLED = -9


@dataclass
class Driver:
    """A driver that has ended."""

    exit_code: int

    @property
    def has_finished_job(self) -> bool:
        return self.exit_code == 0

    def last_words(self, lines: int) -> str:
        return "words"


@dataclass
class FakeSupervisor:
    """Starts a driver that ends at once, in the next of the ways that are given; `at_start` is done before."""

    folder: Path
    endings: list[int]
    at_start: Callable[[int], None] = lambda number: None
    checkpoint_dir: Path = Path()
    drivers: list[Driver] = field(default_factory=list)

    def keep_running(self) -> None:
        self.at_start(len(self.drivers))
        self.drivers.append(Driver(self.endings[len(self.drivers)]))


@dataclass
class FakeFaultInjector:
    """Notes what it is told to strike."""

    struck: list[Fault] = field(default_factory=list)
    undone: bool = False

    def inject(self, fault: Fault) -> bool:
        self.struck.append(fault)
        return True

    def undo(self, *, everything: bool = False) -> None:
        self.undone = everything


def played(supervisor: FakeSupervisor, injector: FakeFaultInjector, faults: tuple[Fault, ...] = ()) -> bool:
    finish = supervisor.folder / "finish"
    return play(cast(Supervisor, supervisor), faults, cast(FaultInjector, injector), finish, lambda: None)


def test_whoever_a_fault_has_ended_is_started_again_until_the_job_is_finished(tmp_path: Path) -> None:
    supervisor = FakeSupervisor(tmp_path, [KILLED, KILLED, 0])
    assert played(supervisor, FakeFaultInjector())
    assert len(supervisor.drivers) == 3


def test_an_end_that_no_fault_explains_ends_the_drill_and_undoes_what_lasts(tmp_path: Path) -> None:
    supervisor, injector = FakeSupervisor(tmp_path, [KILLED, TransactionLost.exit_code, 0]), FakeFaultInjector()
    assert not played(supervisor, injector)
    assert (len(supervisor.drivers), injector.undone) == (2, True)


def test_a_fault_strikes_once_when_its_step_was_reached_and_behind_the_last_the_job_may_hurry(tmp_path: Path) -> None:
    first, second = draw(1, 2, [Kind.KILL_DRIVER]).faults
    hurried = []

    def at_start(number: int) -> None:
        hurried.append((tmp_path / "finish").exists())
        if number in (1, 2):
            fault = first if number == 1 else second
            fault.arm.once(tmp_path).write_text("123\n")

    injector = FakeFaultInjector()
    assert played(FakeSupervisor(tmp_path, [KILLED] * 4 + [0], at_start), injector, (first, second))
    assert injector.struck == [first, second]
    assert hurried == [False, False, False, True, True]


@pytest.mark.parametrize("still_open", [True, False])
def test_a_transaction_is_aborted_only_where_one_is_still_open_and_counts_only_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, still_open: bool
) -> None:
    stored = StoredJob(tmp_path / "checkpoints")
    stored.checkpoint(confirmed=False)
    asked = []

    def settle(client: object, item: Committable, *, act: SettleAction, **_: Any) -> Settled:
        assert act is SettleAction.ABORT
        asked.append(item.name)
        return Settled(item, Outcome.ALREADY_COMMITTED, "what is lost of it, nobody misses")

    monkeypatch.setattr("twopc.drill.transaction_faults.settle", settle)
    monkeypatch.setattr("twopc.drill.transaction_faults.is_lost", lambda *_: still_open and len(asked) == 2)
    (fault,) = draw(1, 1, [Kind.ABORT_TRANSACTION]).faults
    supervisor = cast(Supervisor, FakeSupervisor(tmp_path, [], checkpoint_dir=stored.root))
    injector = FaultInjector(supervisor, stored.job, cast(Any, None), None, lambda _: None)
    assert injector.inject(fault) is still_open
    assert len(asked) == 2
    assert injector.done == ([fault] if still_open else [])
    assert fault.arm.release(tmp_path).exists()


def test_an_expiry_is_waited_for_and_counts_only_when_the_broker_has_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = StoredJob(tmp_path / "checkpoints")
    stored.checkpoint(confirmed=False)
    answers, lost = [Outcome.ALREADY_COMMITTED, Outcome.HELD], [False, False, True]

    def settle(client: object, item: Committable, *, act: SettleAction, **_: Any) -> Settled:
        assert act is SettleAction.HOLD
        return Settled(item, answers.pop(0), "the broker says so")

    monkeypatch.setattr("twopc.drill.transaction_faults.settle", settle)
    monkeypatch.setattr("twopc.drill.transaction_faults.is_lost", lambda *_: lost.pop(0))
    monkeypatch.setattr("twopc.drill.transaction_faults._TURN_SECONDS", 0.0)
    assert expire_one(cast(Any, None), stored.root, stored.job) is None
    assert (answers, lost) == ([], [])


def test_what_is_settled_already_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = StoredJob(tmp_path / "checkpoints")
    stored.checkpoint(confirmed=False)
    monkeypatch.setattr(
        "twopc.drill.transaction_faults.settle", lambda client, item, **_: Settled(item, Outcome.ALREADY_COMMITTED, "")
    )
    assert expire_one(cast(Any, None), stored.root, stored.job) == NOTHING_OPEN


def test_a_fault_that_found_nothing_to_strike_waits_for_the_next_who_comes_to_its_step(tmp_path: Path) -> None:
    (fault,) = draw(1, 1, [Kind.KILL_DRIVER]).faults

    @dataclass
    class Unlucky(FakeFaultInjector):
        """Finds nothing to strike the first time."""

        def inject(self, fault: Fault) -> bool:
            super().inject(fault)
            fault.arm.release(tmp_path).touch()
            return len(self.struck) > 1

    def at_start(number: int) -> None:
        if number == 3:
            fault.arm.disarm(tmp_path)
        if number in (0, 3):
            fault.arm.once(tmp_path).write_text("123\n")

    injector = Unlucky()
    assert played(FakeSupervisor(tmp_path, [KILLED] * 5 + [0], at_start), injector, (fault,))
    assert injector.struck == [fault, fault]


def test_who_was_not_struck_is_armed_again_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twopc.drill.fault_injector.ARMED_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr("twopc.drill.fault_injector.abort_one", lambda *_: NOTHING_OPEN)
    (fault,) = draw(1, 1, [Kind.ABORT_TRANSACTION]).faults
    fault.arm.once(tmp_path).write_text("123\n")
    injector = FaultInjector(
        cast(Supervisor, FakeSupervisor(tmp_path, [])), "job", cast(Any, None), None, lambda _: None
    )
    assert not injector.inject(fault)
    injector.undo()
    assert (injector.missed, list(tmp_path.iterdir())) == ({fault.number: NOTHING_OPEN}, [])
