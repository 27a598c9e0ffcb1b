"""What the live view derives from events."""

from tests.job_events import event
from twopc import events
from twopc.cli.view_state import CHECKPOINTS_SHOWN, RunView
from twopc.protocol.messages import Progress
from twopc.protocol.record_errors import RecordErrorCount, RecordErrorCounter, RecordErrorKind


def view(*heard: events.Event) -> RunView:
    made = RunView("j")
    for one in heard:
        made.note(one)
    return made


def progress(subtask: int, records: int, *, lag: int | None = 5, at: int = 1_000) -> events.Event:
    said = Progress(records_in=records, records_out=records, lag=lag, open_transaction="t", pending_transactions=())
    return event(events.SubtaskProgress, subtask=subtask, progress=said, time_ms=at)


def test_records_and_lag_are_sums_over_subtasks() -> None:
    made = view(progress(0, 10), progress(1, 20))
    assert (made.records_in, made.records_out, made.lag) == (30, 30, 10)


def test_the_lag_is_unknown_while_one_subtask_does_not_know_it() -> None:
    assert view(progress(0, 10), progress(1, 20, lag=None)).lag is None


def test_the_rate_is_of_the_last_seconds() -> None:
    assert view(progress(0, 100, at=0), progress(0, 300, at=1_000)).rate == 200


def test_a_checkpoint_goes_through_its_phases() -> None:
    made = view(
        event(events.SubtaskAttached, subtask=0, pid=1),
        event(events.CheckpointTriggered, checkpoint_id=3),
        event(events.CheckpointAcknowledged, checkpoint_id=3, subtask=0, pause_ms=7.0),
    )
    assert made.checkpoints[3].phase == "acknowledged 1/1"
    made.note(event(events.CheckpointCompleted, checkpoint_id=3, duration_ms=12.0))
    assert (made.checkpoints[3].phase, made.checkpoints[3].duration_ms) == ("completed", 12.0)
    made.note(event(events.CheckpointConfirmed, checkpoint_id=3))
    assert made.checkpoints[3].phase == "committed"


def test_an_aborted_checkpoint_says_why() -> None:
    made = view(
        event(events.CheckpointTriggered, checkpoint_id=1),
        event(events.CheckpointAborted, checkpoint_id=1, message="expired"),
    )
    assert made.checkpoints[1].phase == "aborted: expired"


def test_only_the_newest_checkpoints_are_kept() -> None:
    made = view(
        *(event(events.CheckpointTriggered, checkpoint_id=number) for number in range(1, CHECKPOINTS_SHOWN + 3))
    )
    assert min(made.checkpoints) == 3


def test_a_new_attempt_forgets_the_subtasks_of_the_old_one() -> None:
    made = view(progress(0, 10), event(events.AttemptStarted, attempt=2))
    assert (made.records_in, made.has_figures) == (0, False)


def test_an_attempt_is_announced_when_something_comes_of_it_and_a_start_that_is_refused_is_not() -> None:
    made = view(event(events.AttemptStarted, attempt=1, time_ms=5))
    assert not made.notes
    made.note(event(events.SubtaskAttached, attempt=1, subtask=0, pid=1))
    made.note(event(events.AttemptFailed, attempt=1, message="a function failed"))
    for refused in (2, 3):
        made.note(event(events.AttemptStarted, attempt=refused))
        made.note(event(events.AttemptFailed, attempt=refused, message="no topic"))
    assert list(made.notes) == [(5, "attempt 1 started")]


def test_records_that_went_wrong_are_summed_and_the_first_of_each_kind_is_a_note() -> None:
    kind = RecordErrorKind("web", "map(f)", "KeyError", "record web[0]@7: map(f) failed")
    counter = RecordErrorCounter()
    counter.add("web", "map(f)", skipped=2)
    counter.add("shop", "decoding", dead_letters=1)
    reports = [Progress(9, 9, None, None, figures=counter.figures()) for _ in range(2)]
    made = view(
        *(event(events.SubtaskProgress, subtask=number, progress=said) for number, said in enumerate(reports)),
        event(events.RecordFailed, subtask=1, error=kind),
    )
    assert made.record_errors == (RecordErrorCount("web", "map(f)", 4, 0), RecordErrorCount("shop", "decoding", 0, 2))
    assert [note for _, note in made.notes] == ["went wrong: record web[0]@7: map(f) failed"]


def test_a_function_that_does_not_return_is_told_of_at_once_and_then_every_half_minute() -> None:
    made = RunView("j")
    for at in range(0, 75_000, 1_000):
        slow = f"map(f) at record in[0]@7 for {at // 1_000 + 1} s"
        said = Progress(records_in=1, records_out=0, lag=None, open_transaction=None, slow=slow)
        made.note(event(events.SubtaskProgress, subtask=1, progress=said, time_ms=at))
    made.note(progress(1, 2, at=75_000))
    made.note(event(events.SubtaskProgress, subtask=1, progress=said, time_ms=76_000))
    assert [(at, note[-4:]) for at, note in made.notes] == [
        (0, " 1 s"),
        (30_000, "31 s"),
        (60_000, "61 s"),
        (76_000, "75 s"),
    ]
    assert made.notes[0][1] == "subtask 1 is in map(f) at record in[0]@7 for 1 s"
