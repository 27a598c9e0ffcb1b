"""A full disk under a snapshot: whoever stores it must decline the checkpoint and say why, and has room again then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest

from tests.job_events import event
from twopc import events
from twopc.drill.stage import Stage
from twopc.drill.stored_strikes import LITTLE_ROOM, fill_under

WORKER = 4711
DECLINED = "subtask 1 declined: the snapshot of subtask 1 can't be stored in .../chk-4: [Errno 27] File too large"


def aborted(why: str) -> events.Event:
    return event(events.CheckpointAborted, message=why)


@dataclass
class FakeStage:
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
    monkeypatch.setattr("twopc.drill.stored_strikes._DECLINE_SECONDS", 0.05)


def filled(stage: FakeStage) -> str | None:
    return fill_under(cast(Stage, stage), WORKER, stage.go_on)


def test_a_checkpoint_that_is_declined_for_its_snapshot_was_struck_and_there_is_room_again() -> None:
    stage = FakeStage([aborted(DECLINED)])
    assert filled(stage) is None
    assert stage.limits == [(WORKER, LITTLE_ROOM), (WORKER, None)]


@pytest.mark.parametrize("why", ["it took longer than 10 s", "subtask 1 declined: no free slot"])
def test_a_checkpoint_that_is_aborted_for_another_reason_does_not_count(why: str) -> None:
    stage = FakeStage([aborted(why)])
    assert "declined" in str(filled(stage))
    assert stage.limits[-1] == (WORKER, None)


def test_what_was_declined_before_does_not_count() -> None:
    assert filled(FakeStage([], told=[aborted(DECLINED)])) is not None


def test_a_worker_that_has_ended_stores_nothing() -> None:
    assert filled(FakeStage([aborted(DECLINED)], lives=False)) == "the worker that stood there had ended"
