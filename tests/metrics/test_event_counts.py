"""What is counted of a job's events."""

from __future__ import annotations

from prometheus_client import generate_latest

from tests.job_events import event
from tests.metrics.kit import ScrapedMetrics
from twopc import events
from twopc.metrics.jobs import JobMetrics
from twopc.protocol.checkpoints import FailureReason

JOB = {"job_name": "flights"}


def counted(*happened: events.Event) -> ScrapedMetrics:
    metrics = JobMetrics(lambda: ())
    for each in happened:
        metrics.note(each)
    return ScrapedMetrics(generate_latest(metrics.registry).decode())


def test_an_attempt_after_one_that_failed_is_a_restart_and_the_first_of_a_run_is_none() -> None:
    started, again = event(events.AttemptStarted), event(events.AttemptStarted, restart=True)
    assert counted(started, started).value("twopc_job_num_restarts_total", **JOB) == 0
    assert counted(started, again, again).value("twopc_job_num_restarts_total", **JOB) == 2


def test_failed_attempts_are_counted_by_our_own_errors() -> None:
    found = counted(
        event(events.AttemptFailed, error_type="Unavailable"),
        event(events.AttemptFailed, error_type="NameThatASubtaskMadeUp1"),
        event(events.AttemptFailed, error_type="NameThatASubtaskMadeUp2"),
    )
    assert found.value("twopc_job_attempts_failed_total", **JOB, error_type="Unavailable") == 1
    assert found.value("twopc_job_attempts_failed_total", **JOB, error_type="other") == 2


def test_aborted_checkpoints_are_counted_by_reason() -> None:
    found = counted(
        event(events.CheckpointAborted, reason=FailureReason.CHECKPOINT_EXPIRED),
        event(events.CheckpointAborted, reason=FailureReason.CHECKPOINT_EXPIRED),
        event(events.CheckpointAborted, reason=FailureReason.TASK_FAILURE),
    )
    assert found.value("twopc_job_checkpoint_failures_total", **JOB, reason="CHECKPOINT_EXPIRED") == 2
    assert found.value("twopc_job_checkpoint_failures_total", **JOB, reason="TASK_FAILURE") == 1


def test_how_long_checkpoints_take_is_a_histogram_in_seconds() -> None:
    found = counted(
        event(events.CheckpointCompleted, duration_ms=40.0), event(events.CheckpointCompleted, duration_ms=4_000.0)
    )
    name = "twopc_job_checkpoint_duration_seconds"
    assert found.value(f"{name}_count", **JOB) == 2
    assert found.value(f"{name}_sum", **JOB) == 4.04
    assert found.value(f"{name}_bucket", **JOB, le="0.05") == 1


def test_how_long_loops_stand_still_and_commits_take_is_there_too() -> None:
    found = counted(
        event(events.CheckpointAcknowledged, duration_ms=30.0, pause_ms=2.0),
        event(events.CheckpointConfirmed, duration_ms=700.0),
    )
    assert found.value("twopc_subtask_checkpoint_pause_seconds_sum", **JOB) == 0.002
    assert found.value("twopc_subtask_checkpoint_duration_seconds_sum", **JOB) == 0.03
    assert found.value("twopc_job_commit_duration_seconds_sum", **JOB) == 0.7


def test_what_recovery_did_to_transactions_is_counted() -> None:
    found = counted(
        event(events.TransactionResumed),
        event(events.TransactionResumed),
        event(events.TransactionAborted),
        event(events.LossSettled),
    )
    assert found.value("twopc_job_transactions_resumed_total", **JOB) == 2
    assert found.value("twopc_job_transactions_aborted_total", **JOB) == 1
    assert found.value("twopc_job_losses_settled_total", **JOB) == 1
