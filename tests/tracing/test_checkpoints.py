"""The trace that is made of a checkpoint's events."""

from __future__ import annotations

from collections.abc import Sequence

from tests.job_events import event
from twopc import events
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.tracing.checkpoints import FAILURE_REASON, GONE, OPEN_MAX, OVER, RECOVERED, SUBTASK, CheckpointTraces
from twopc.tracing.span import Span

COMPLETED: Sequence[events.Event] = (
    event(events.CheckpointTriggered, time_ms=1_000),
    event(events.CheckpointAcknowledged, time_ms=1_040, subtask=0, duration_ms=30.0, pause_ms=10.0),
    event(events.CheckpointAcknowledged, time_ms=1_060, subtask=1, duration_ms=60.0, pause_ms=5.0),
    event(events.CheckpointCompleted, time_ms=1_065),
)


def traces_of(*happened: events.Event) -> list[Span]:
    traces = CheckpointTraces()
    return [trace for each in happened for trace in traces.note(each)]


def stretches(spans: Sequence[Span]) -> list[tuple[str, object, float, float]]:
    return [(span.name, span.attributes.get(SUBTASK), span.start_ms, span.end_ms) for span in spans]


def test_a_checkpoint_is_one_trace_from_its_trigger_until_all_of_it_is_committed() -> None:
    [trace] = traces_of(
        *COMPLETED,
        event(events.CheckpointCommitted, time_ms=1_080, subtask=0),
        event(events.CheckpointCommitted, time_ms=1_090, subtask=1),
        event(events.CheckpointConfirmed, time_ms=1_090),
    )
    assert (trace.name, trace.start_ms, trace.end_ms, trace.error) == ("checkpoint", 1_000, 1_090, "")
    assert trace.attributes == {
        "twopc.job.name": "flights",
        "twopc.attempt": 1,
        "twopc.checkpoint.id": 1,
        "twopc.checkpoint.kind": "periodic",
    }
    assert stretches(trace.children) == [
        ("trigger", 0, 1_000, 1_010),
        ("snapshot", 0, 1_010, 1_040),
        ("trigger", 1, 1_000, 1_000),
        ("snapshot", 1, 1_000, 1_060),
        ("completion", None, 1_060, 1_065),
        ("commit", 0, 1_065, 1_080),
        ("commit", 1, 1_065, 1_090),
    ]


def test_a_snapshot_says_how_long_the_loop_stood_still_for_it() -> None:
    [trace] = traces_of(*COMPLETED, event(events.CheckpointConfirmed, time_ms=1_090))
    assert stretches(trace.children[1].children) == [("pre-commit", 0, 1_010, 1_020), ("store", 0, 1_020, 1_040)]


def test_a_subtask_whose_clock_runs_fast_took_nothing_up_before_the_trigger() -> None:
    [trace] = traces_of(
        event(events.CheckpointTriggered, time_ms=1_000),
        event(events.CheckpointAcknowledged, time_ms=1_010, duration_ms=50.0, pause_ms=50.0),
        event(events.CheckpointAborted, time_ms=1_020),
    )
    every = [trace, *trace.children, *trace.children[1].children]
    assert all(1_000 <= span.start_ms <= span.end_ms <= 1_020 for span in every)


def test_an_aborted_checkpoint_says_why() -> None:
    reason = FailureReason.CHECKPOINT_EXPIRED
    [trace] = traces_of(
        event(events.CheckpointTriggered, time_ms=1_000, kind=CheckpointKind.SAVEPOINT, label="friday"),
        event(events.CheckpointAborted, time_ms=9_000, reason=reason, message="subtask 1 is silent"),
    )
    assert (trace.end_ms, trace.error) == (9_000, "subtask 1 is silent")
    assert trace.attributes[FAILURE_REASON] == "CHECKPOINT_EXPIRED"
    assert trace.attributes["twopc.checkpoint.label"] == "friday"


def test_a_commit_is_of_every_completed_checkpoint_before_it() -> None:
    later = (
        event(events.CheckpointTriggered, checkpoint_id=2, time_ms=1_100),
        event(events.CheckpointCompleted, checkpoint_id=2, time_ms=1_120),
        event(events.CheckpointTriggered, checkpoint_id=3, time_ms=1_130),
        event(events.CheckpointCommitted, checkpoint_id=2, time_ms=1_140),
        event(events.CheckpointConfirmed, checkpoint_id=2, time_ms=1_150),
    )
    one, two = traces_of(*COMPLETED, *later)
    assert [trace.children[-1].name for trace in (one, two)] == ["commit", "commit"]
    assert (one.end_ms, two.end_ms) == (1_150, 1_150)


def test_what_recovery_committed_ends_when_the_next_attempt_attaches_and_what_was_in_flight_with_the_attempt() -> None:
    gone, recovered = traces_of(
        *COMPLETED,
        event(events.CheckpointTriggered, checkpoint_id=2, time_ms=2_000),
        event(events.AttemptStarted, attempt=2, time_ms=3_000),
        event(events.SubtaskAttached, attempt=2, time_ms=4_000),
        event(events.SubtaskAttached, attempt=2, time_ms=4_001),
    )
    assert (gone.attributes["twopc.checkpoint.id"], gone.end_ms, gone.error) == (2, 3_000, GONE)
    assert (recovered.attributes["twopc.checkpoint.id"], recovered.end_ms, recovered.error) == (1, 4_000, "")
    assert recovered.attributes[RECOVERED] is True


def test_a_subtask_that_attaches_again_ends_nothing() -> None:
    assert traces_of(*COMPLETED, event(events.SubtaskAttached, time_ms=1_070)) == []


def test_jobs_of_one_coordinator_are_told_apart() -> None:
    [trace] = traces_of(
        *COMPLETED,
        event(events.CheckpointTriggered, job="other"),
        event(events.CheckpointAborted, job="other", time_ms=5),
    )
    assert (trace.attributes["twopc.job.name"], trace.end_ms) == ("other", 5)


def test_what_was_under_way_when_the_process_ended_is_told() -> None:
    traces = CheckpointTraces()
    for each in COMPLETED:
        traces.note(each)
    [left] = traces.end(7_000)
    assert (left.end_ms, left.error) == (7_000, OVER)
    assert traces.end(7_000) == []


def test_checkpoints_whose_end_nobody_told_of_do_not_add_up() -> None:
    traces = CheckpointTraces()
    for number in range(1, OPEN_MAX + 50):
        traces.note(event(events.CheckpointTriggered, checkpoint_id=number))
    assert len(traces.end(0)) == OPEN_MAX


def test_a_checkpoint_whose_trigger_was_not_heard_has_no_trace() -> None:
    assert traces_of(*COMPLETED[1:], event(events.CheckpointConfirmed)) == []
