"""A full disk under a snapshot: whoever stores it must decline the checkpoint and say why, and has room again then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest

from tests.job_events import event
from twopc import events
from twopc.drill.storage_faults import LITTLE_ROOM, fill_under
from twopc.drill.supervisor import Supervisor

WORKER = 4711
DECLINED = "subtask 1 declined: the snapshot of subtask 1 can't be stored in .../chk-4: [Errno 27] File too large"


def aborted(why: str) -> events.Event:
    return event(events.CheckpointAborted, message=why)


@dataclass
class FakeSupervisor:
    """Its processes tell `then` once the worker has gone on."""

    then: list[events.Event]
    lives: bool = True
    told: list[events.Event] = field(default_factory=list)
    limits: list[tuple[int, int | None]] = field(default_factory=list)

    def limit_files(self, pid: int, size_bytes: int | None) -> bool:
        self.limits.append((pid, size_bytes))
        return self.lives

    def all_events(self) -> Iterator[events.Event]:
        yield from self.told

    def go_on(self) -> None:
        self.told += self.then


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twopc.drill.storage_faults._DECLINE_SECONDS", 0.05)


def filled(supervisor: FakeSupervisor) -> str | None:
    return fill_under(cast(Supervisor, supervisor), WORKER, supervisor.go_on)


def test_a_checkpoint_that_is_declined_for_its_snapshot_was_struck_and_there_is_room_again() -> None:
    supervisor = FakeSupervisor([aborted(DECLINED)])
    assert filled(supervisor) is None
    assert supervisor.limits == [(WORKER, LITTLE_ROOM), (WORKER, None)]


@pytest.mark.parametrize("why", ["it took longer than 10 s", "subtask 1 declined: no free slot"])
def test_a_checkpoint_that_is_aborted_for_another_reason_does_not_count(why: str) -> None:
    supervisor = FakeSupervisor([aborted(why)])
    assert "declined" in str(filled(supervisor))
    assert supervisor.limits[-1] == (WORKER, None)


def test_what_was_declined_before_does_not_count() -> None:
    assert filled(FakeSupervisor([], told=[aborted(DECLINED)])) is not None


def test_a_worker_that_has_ended_stores_nothing() -> None:
    assert filled(FakeSupervisor([aborted(DECLINED)], lives=False)) == "the worker that stood there had ended"
