from __future__ import annotations

import pytest

from tests.job_events import event
from twopc import events
from twopc.bench.figures import steady_cpu, steady_rate, summary
from twopc.bench.recorder import Recorder
from twopc.bench.usage import Usage, cpu_at
from twopc.protocol.messages import Progress


def progress(at_s: float, records: int, subtask: int = 0) -> events.Event:
    told = Progress(records, records, None, None)
    return event(events.SubtaskProgress, time_ms=round(at_s * 1000), subtask=subtask, progress=told)


def recorded(*heard: events.Event) -> Recorder:
    recorder = Recorder()
    for each in heard:
        recorder.note(each)
    return recorder


def test_the_steady_rate_leaves_out_the_first_and_the_last_tenth() -> None:
    slow_start = [0] * 10 + [1_000 + index for index in range(80)] + [9_000] * 10
    assert steady_rate(slow_start) == pytest.approx(80 * 1000 / 79)


def test_records_appended_in_one_millisecond_have_no_rate() -> None:
    assert steady_rate([5] * 100) is None


def test_the_moment_of_a_record_lies_between_two_reports() -> None:
    recorder = recorded(progress(10, 0), progress(12, 100))
    assert recorder.moment(50) == pytest.approx(11)


def test_a_count_that_was_never_reached_has_no_moment() -> None:
    assert recorded(progress(10, 5)).moment(6) is None


def test_the_records_of_all_subtasks_count() -> None:
    assert recorded(progress(1, 5, 0), progress(1, 7, 1)).records == 12


def test_a_new_attempt_counts_from_zero() -> None:
    started = event(events.AttemptStarted, attempt=2, time_ms=2_000)
    assert recorded(progress(1, 5), started, progress(3, 1)).records == 1


def test_cpu_is_taken_over_the_steady_part_only() -> None:
    recorder = recorded(progress(0, 0), progress(10, 1_000_000))
    samples = [Usage(second, 5.0 if second else 0.0, 0, 0) for second in (0, 1, 9)]
    samples = [Usage(0, 0, 0, 0), Usage(1, 5, 0, 0), Usage(9, 21, 0, 0), Usage(10, 30, 0, 0)]
    assert steady_cpu(recorder, samples, 1_000_000) == pytest.approx(16 / 0.8)


def test_cpu_between_two_samples_is_in_proportion() -> None:
    assert cpu_at([Usage(0, 0, 0, 0), Usage(2, 10, 0, 0)], 1.0) == pytest.approx(5)


def test_durations_are_summed_up_by_median_and_tail() -> None:
    assert summary([float(value) for value in range(1, 101)]) == {"p50": 51, "p99": 100, "max": 100}


def test_nothing_is_said_of_no_durations() -> None:
    assert summary([]) == {}


def test_checkpoints_pauses_and_aborts_are_counted() -> None:
    recorder = recorded(
        event(events.CheckpointAcknowledged, pause_ms=7),
        event(events.CheckpointCompleted, time_ms=1_000, duration_ms=30),
        event(events.CheckpointAborted),
    )
    assert (recorder.pauses, recorder.checkpoints, recorder.aborted) == ([7], [(1.0, 30)], 1)
