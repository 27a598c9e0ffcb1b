"""What many subtasks say is stored as one fact: when the last has said so, or a moment after the first."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import FrameType

import pytest

from coordinator.commits import WAIT_MS
from coordinator.ledger import Ledger
from tests.coordinator.kit import INTERVAL, JOB, SETTINGS, FaultyStorage, Scene, checkpoint, snapshot, stored
from twopc import events
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.codec import from_json, to_json
from twopc.protocol.ledger_facts import CommittablesConfirmed
from twopc.protocol.ledger_state import LedgerState
from twopc.protocol.messages import Ack, Committed, Complete, Failed, FencedOff
from twopc.protocol.times import SubtaskTimes
from twopc.storage.memory import MemoryStore
from twopc.storage.store import CheckpointStore


def on_disk(scene: Scene) -> Ledger:
    return Ledger(JOB, scene.storage)


def facts(storage: CheckpointStore) -> list[CommittablesConfirmed]:
    return stored(storage, CommittablesConfirmed)


def waiting(parallelism: int = 2, storage: CheckpointStore | None = None) -> Scene:
    """A job whose first checkpoint has completed, with nothing committed."""
    scene = Scene(storage)
    scene.run(parallelism)
    scene.complete(1, parallelism=parallelism, commit=False)
    return scene


def test_what_all_subtasks_have_committed_is_stored_at_once_as_one_fact() -> None:
    scene = waiting(100)
    for subtask in range(100):
        assert not facts(scene.storage)
        scene.committed(subtask, 1)
    assert [len(fact.names) for fact in facts(scene.storage)] == [100]
    assert scene.told(events.CheckpointConfirmed, 1)


def test_one_subtask_alone_waits_for_nobody() -> None:
    scene = waiting(1)
    scene.committed(0, 1)
    assert [type(event) for event in scene.outlet.events[-2:]] == [
        events.CheckpointCommitted,
        events.CheckpointConfirmed,
    ]


def test_what_was_said_is_stored_a_moment_later_where_others_are_late() -> None:
    scene = waiting()
    scene.committed(0, 1)
    scene.wait(WAIT_MS - 1)
    assert not facts(scene.storage)
    assert not scene.told(events.CheckpointCommitted, 1)
    scene.wait(1)
    (completed,) = on_disk(scene).state.completed
    assert completed.confirmed == {"t1-0"}
    assert completed.outstanding == {"t1-1"}
    assert scene.told(events.CheckpointCommitted, 1)


def test_the_moment_counts_from_the_first_that_waits() -> None:
    scene = waiting(3)
    scene.committed(0, 1)
    scene.wait(WAIT_MS - 1)
    scene.committed(1, 1)
    scene.wait(1)
    assert [fact.names for fact in facts(scene.storage)] == [("t1-0", "t1-1")]


def test_the_coordinator_wakes_when_what_waits_is_due_and_not_before() -> None:
    scene = waiting()
    before = scene.jobs.deadline()
    scene.committed(0, 1)
    assert scene.jobs.deadline() == scene.clock.now().monotonic_ms + WAIT_MS
    scene.wait(WAIT_MS)
    assert scene.jobs.deadline() == before


def test_what_is_said_twice_is_stored_once() -> None:
    scene = waiting()
    scene.say(0, Committed(checkpoint(1)), Committed(checkpoint(1)))
    scene.wait(WAIT_MS)
    scene.committed(0, 1)
    scene.wait(WAIT_MS)
    assert [fact.names for fact in facts(scene.storage)] == [("t1-0",)]
    assert len(scene.told(events.CheckpointCommitted, 1)) == 1


def test_what_was_said_before_the_attempt_failed_waits_no_longer() -> None:
    scene = waiting()
    scene.committed(0, 1)
    scene.say(1, Failed("Exception", "broken", True))
    assert on_disk(scene).state.completed[0].confirmed == {"t1-0"}


def test_what_is_said_after_the_attempt_failed_is_stored_too() -> None:
    scene = waiting()
    scene.say(1, Failed("Exception", "broken", True))
    scene.committed(0, 1)
    assert on_disk(scene).state.completed[0].confirmed == {"t1-0"}


def test_a_full_disk_after_the_attempt_failed_makes_nobody_spin() -> None:
    disk = FaultyStorage()
    scene = waiting(storage=disk)
    disk.is_full = lambda name, data: True
    scene.committed(0, 1)
    scene.say(1, Failed("Exception", "broken", True))
    due = scene.jobs.deadline()
    assert due is not None
    assert due > scene.clock.now().monotonic_ms
    disk.is_full = lambda name, data: False
    scene.wait(due - scene.clock.now().monotonic_ms)
    assert on_disk(scene).state.completed[0].confirmed == {"t1-0"}
    assert scene.jobs.deadline() is None


def test_what_was_said_to_a_coordinator_that_died_is_said_again_to_the_next() -> None:
    scene = waiting()
    scene.committed(0, 1)
    scene.restart()
    for subtask in (0, 1):
        scene.attach(subtask, last=1)
        assert scene.heard(subtask) == [Complete(checkpoint(1))]
        scene.committed(subtask, 1)
    assert on_disk(scene).state.completed[0].outstanding == frozenset()


def test_what_the_driver_confirms_confirms_nothing_of_what_subtasks_said() -> None:
    scene = waiting()
    scene.committed(0, 1)
    scene.confirm(1, "t1-1")
    assert not scene.told(events.CheckpointCommitted, 1)
    assert on_disk(scene).state.completed[0].outstanding == {"t1-0"}
    scene.wait(WAIT_MS)
    assert on_disk(scene).state.completed[0].outstanding == frozenset()


def test_what_was_said_of_a_checkpoint_that_was_forgotten_meanwhile_confirms_those_that_are_kept() -> None:
    """A savepoint names transactions of subtask 0 too; the third checkpoint has none, so the second is not needed."""
    scene = Scene(settings=replace(SETTINGS, retained=1))
    scene.run()
    scene.ask(CheckpointKind.SAVEPOINT)
    for subtask in (0, 1):
        scene.ack(subtask, 1, f"t1-{subtask}")
        scene.heard(subtask)
    scene.complete(2, commit=False)
    scene.wait(INTERVAL)
    for subtask in (0, 1):
        scene.ack(subtask, 3)
    scene.wait(INTERVAL - 1)
    scene.committed(0, 2)
    scene.wait(1)
    assert [each.checkpoint_id for each in on_disk(scene).state.completed] == [1, 3]
    scene.wait(WAIT_MS)
    assert [each.outstanding for each in on_disk(scene).state.completed] == [{"t1-1"}, frozenset()]
    assert not any(isinstance(message, FencedOff) for _, message in scene.outlet.sent)


@pytest.mark.skipif(sys.getprofile() is not None, reason="somebody else counts calls")
def test_ten_times_the_subtasks_are_ten_times_the_work() -> None:
    few, many = calls_of_a_checkpoint(20), calls_of_a_checkpoint(200)
    assert many < 11 * few


def calls_of_a_checkpoint(parallelism: int) -> int:
    """How many functions the coordinator calls for one checkpoint, each message coming by itself."""
    scene = Scene(MemoryStore())
    scene.run(parallelism)
    scene.complete(1, parallelism=parallelism)
    scene.outlet.sent.clear()
    count = 0

    def called(frame: FrameType, what: str, argument: object) -> None:
        nonlocal count
        count += what == "call" and "coordinator/" in frame.f_code.co_filename

    sys.setprofile(called)
    try:
        scene.wait(INTERVAL)
        for subtask in range(parallelism):
            scene.ack(subtask, 2, f"t2-{subtask}")
        for subtask in range(parallelism):
            scene.committed(subtask, 2)
    finally:
        sys.setprofile(None)
    assert scene.told(events.CheckpointConfirmed, 2)
    return count


def test_times_of_every_phase_are_stored_with_the_checkpoint_and_its_confirmation() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    triggered = scene.clock.now().unix_ms
    for subtask in range(2):
        scene.clock.advance(30)
        stored = snapshot(subtask, f"t{subtask}")
        scene.say(subtask, Ack(checkpoint(1), stored, pause_ms=12.3456, store_ms=9, pre_commit_ms=10, write_ms=4))
    for subtask in range(2):
        scene.clock.advance(5)
        scene.committed(subtask, 1)
    ledger = on_disk(scene)
    metadata, (completed,) = ledger.metadata(checkpoint(1)), ledger.state.completed
    assert metadata.times == (SubtaskTimes(10, 12.35, 4, 9, 30), SubtaskTimes(10, 12.35, 4, 9, 60))
    assert (metadata.triggered_ms, metadata.acknowledged_ms) == (triggered, triggered + 60)
    assert (completed.completed_ms, completed.confirmed_ms) == (triggered + 60, triggered + 70)


def test_a_summary_keeps_the_times_of_a_confirmation() -> None:
    scene = waiting()
    for subtask in range(2):
        scene.committed(subtask, 1)
    before = on_disk(scene).state.completed
    scene.start()
    assert before[0].confirmed_ms > 0
    assert from_json(LedgerState, to_json(on_disk(scene).state)).completed == before
