from __future__ import annotations

from tests.job_events import event
from twopc import events
from twopc.drill.timeline import RecoveryClock, Timeline
from twopc.protocol.messages import Progress

BEGAN = 1_000.0


def at(seconds: float) -> int:
    return int((BEGAN + seconds) * 1000)


def progress(seconds: float, subtask: int, records: int) -> events.Event:
    told = Progress(records_in=records, records_out=records, lag=0, open_transaction=None, pending_transactions=())
    return event(events.SubtaskProgress, time_ms=at(seconds), subtask=subtask, progress=told)


def test_a_job_is_restored_when_its_last_subtask_is() -> None:
    clock = RecoveryClock(BEGAN, 2)
    clock.note(progress(1.0, 0, 0))
    before = clock.restored
    clock.note(progress(1.5, 1, 0))
    clock.note(progress(2.0, 0, 5))
    assert (before, clock.restored, clock.first_record) == (None, 1.5, 2.0)


def test_it_has_caught_up_when_its_last_subtask_has() -> None:
    clock = RecoveryClock(BEGAN, 2)
    clock.note(event(events.EndOfInput, time_ms=at(3.0), subtask=1))
    before = clock.caught_up
    clock.note(event(events.EndOfInput, time_ms=at(4.0), subtask=0))
    assert (before, clock.caught_up) == (None, 4.0)


def test_who_has_nothing_left_to_read_was_restored_before() -> None:
    clock = RecoveryClock(BEGAN, 1)
    clock.note(event(events.EndOfInput, time_ms=at(3.0), subtask=0))
    clock.note(progress(3.1, 0, 0))
    assert (clock.restored, clock.caught_up) == (3.0, 3.0)


def test_the_timeline_tells_what_happened_in_order() -> None:
    timeline = Timeline(BEGAN)
    timeline.note(event(events.CheckpointCompleted, time_ms=at(2.0), checkpoint_id=7, duration_ms=12.4))
    timeline.note(event(events.AttemptStarted, time_ms=at(1.0), attempt=2))
    timeline.note(event(events.CheckpointTriggered, time_ms=at(1.5), checkpoint_id=7))
    assert [(moment.at, moment.kind, moment.text) for moment in timeline.in_order()] == [
        (1.0, "restarts", "attempt 2 started"),
        (2.0, "checkpoints", "checkpoint 7 completed in 12 ms"),
    ]
