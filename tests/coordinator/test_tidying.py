"""The checkpoint folder is kept small, and nobody waits for that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from coordinator.events import SessionId
from coordinator.ledger import SUMMARY_EVERY, Ledger
from coordinator.shell import JobShell
from tests.coordinator.kit import INTERVAL, JOB, SETTINGS, Recorder, Scene, checkpoint
from twopc.clock import ManualClock
from twopc.errors import Fenced
from twopc.protocol.attempt_facts import AttemptStarted
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.protocol.ledger_facts import CheckpointReserved
from twopc.protocol.messages import Complete, ToSubtask, Trigger
from twopc.storage.memory import MemoryStore

Sent = list[tuple[SessionId, ToSubtask]]


class WatchedDisk(MemoryStore):
    """Notes what had been sent when a folder was removed, and when a summary was stored."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: Sent = []
        self.before_removal: Sent = []
        self.before_summary: Sent = []

    def create_once(self, name: str, data: bytes) -> None:
        if b'"kind":"summary"' in data:
            self.before_summary = list(self.sent)
        super().create_once(name, data)

    def delete(self, names: Iterable[str]) -> None:
        names = list(names)
        if any(name.startswith("chk-") for name in names):
            self.before_removal = list(self.sent)
        super().delete(names)


def test_what_is_forgotten_is_deleted_only_when_all_subtasks_are_triggered() -> None:
    disk = WatchedDisk()
    scene = Scene(disk, replace(SETTINGS, retained=1))
    scene.run()
    scene.complete(1)
    scene.complete(2)
    scene.outlet.sent.clear()
    disk.sent = scene.outlet.sent
    scene.wait(INTERVAL)
    assert [message for _, message in disk.before_removal] == [Trigger(checkpoint(3))] * 2
    assert "chk-1" not in disk.parts()


def test_a_long_ledger_is_summed_up_only_when_what_was_stored_is_told() -> None:
    """The summary of the attempt is one entry, a checkpoint without its confirmation two: a completion comes last."""
    disk = WatchedDisk()
    scene = Scene(disk)
    scene.run(parallelism=1)
    disk.sent = scene.outlet.sent
    last = (SUMMARY_EVERY - 1 - 2 * 2 - 2) // 3 + 3
    for number in range(1, last):
        scene.complete(number, parallelism=1, commit=number > 2)
    assert not disk.before_summary
    scene.complete(last, parallelism=1)
    assert disk.before_summary[-1][1] == Complete(checkpoint(last))
    assert len(disk.names("ledger/")) < 5


def test_who_finds_when_compacting_that_another_owns_the_ledger_learns_it_with_the_next_fact() -> None:
    disk = MemoryStore()
    fenced = Ledger(JOB, disk, summary_every=1)
    fenced.store(AttemptStarted(AttemptId(1), 1, SETTINGS, CheckpointId(0), 0))
    Ledger(JOB, disk).store(AttemptStarted(AttemptId(2), 1, SETTINGS, CheckpointId(0), 0))
    JobShell(JOB, fenced, ManualClock(), Recorder()).compact(())
    with pytest.raises(Fenced):
        fenced.store(CheckpointReserved(checkpoint(1), AttemptId(1), CheckpointKind.PERIODIC))
