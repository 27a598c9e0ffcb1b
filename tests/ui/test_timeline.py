"""The phases of a checkpoint are the same, whether they were heard of or are read from the ledger."""

from __future__ import annotations

from pathlib import Path

from tests.job_events import event
from tests.stored_job import JOB, TRIGGERED_MS
from tests.ui.kit import CHECKPOINTS, stored_job
from twopc import events
from twopc.checkpoints.catalog import read_job
from twopc.checkpoints.times import times_of
from twopc.protocol.checkpoints import FailureReason
from twopc.storage.local import LocalStore
from twopc.ui.timeline import Row, newest_rows, row_of_times
from twopc.ui.traces import KEPT, Traces

HEARD = (
    event(events.CheckpointTriggered, time_ms=1_000),
    event(events.CheckpointAcknowledged, time_ms=1_040, subtask=0, duration_ms=30.0, pause_ms=10.0),
    event(events.CheckpointCompleted, time_ms=1_065),
    event(events.CheckpointCommitted, time_ms=1_080, subtask=0),
    event(events.CheckpointConfirmed, time_ms=1_090),
)


def stretches(row: Row) -> list[tuple[object, ...]]:
    return [(part["name"], part["subtask"], part["start_ms"], part["end_ms"]) for part in row["parts"]]


def stored_rows(folder: Path) -> list[Row]:
    entries = read_job(LocalStore(folder / CHECKPOINTS), JOB).completed
    return [row_of_times(each.completed, times_of(each.metadata, each.completed)) for each in entries if each.metadata]


def test_a_checkpoint_that_was_heard_of_has_each_phase_of_each_subtask() -> None:
    traces = Traces()
    for each in HEARD:
        traces.note(each)
    [row] = traces.of(HEARD[0].job)
    assert (row["checkpoint_id"], row["start_ms"], row["end_ms"], row["error"]) == (1, 1_000, 1_090, "")
    assert stretches(row) == [
        ("trigger", 0, 1_000, 1_010),
        ("pre-commit", 0, 1_010, 1_020),
        ("store", 0, 1_020, 1_040),
        ("completion", None, 1_040, 1_065),
        ("commit", 0, 1_065, 1_080),
    ]


def test_one_that_was_aborted_says_why() -> None:
    traces = Traces()
    reason = FailureReason.CHECKPOINT_EXPIRED
    traces.note(HEARD[0])
    traces.note(event(events.CheckpointAborted, time_ms=1_500, reason=reason, message="took longer than 1m"))
    [row] = traces.of(HEARD[0].job)
    assert (row["end_ms"], row["error"]) == (1_500, "took longer than 1m")


def test_only_the_last_are_kept_and_a_job_has_its_own() -> None:
    traces = Traces()
    for number in range(1, KEPT + 3):
        traces.note(event(events.CheckpointTriggered, time_ms=number, checkpoint_id=number))
        traces.note(event(events.CheckpointCompleted, time_ms=number, checkpoint_id=number))
        traces.note(event(events.CheckpointConfirmed, time_ms=number, checkpoint_id=number))
    rows = traces.of(HEARD[0].job)
    assert [row["checkpoint_id"] for row in rows] == list(range(3, KEPT + 3))
    assert traces.of("another") == []


def test_the_ledger_tells_the_same_phases_as_far_as_they_were_written_down(tmp_path: Path) -> None:
    stored_job(tmp_path)
    confirmed, unconfirmed = stored_rows(tmp_path)
    begun = TRIGGERED_MS
    assert stretches(confirmed)[:3] == [
        ("trigger", 0, begun, begun + 3.0),
        ("pre-commit", 0, begun + 3.0, begun + 15.0),
        ("store", 0, begun + 15.0, begun + 215.0),
    ]
    assert stretches(confirmed)[6:] == [
        ("completion", None, begun + 250, begun + 253),
        ("commit", None, begun + 253, begun + 270),
    ]
    assert confirmed["end_ms"] == begun + 270
    assert (len(unconfirmed["parts"]), unconfirmed["end_ms"]) == (6, begun + 250)


def test_of_a_checkpoint_that_both_know_the_trace_is_shown(tmp_path: Path) -> None:
    stored_job(tmp_path)
    first, second = stored_rows(tmp_path)
    heard = first | {"parts": [], "error": "heard"}
    rows = newest_rows([heard], [first, second], 5)
    assert [(row["checkpoint_id"], row["error"]) for row in rows] == [(2, ""), (1, "heard")]
    assert newest_rows([heard], [first, second], 1) == rows[:1]
