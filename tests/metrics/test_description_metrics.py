"""What a scrape says of jobs, read by the parser of the official client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from tests.metrics.kit import IDLE, RUNNING, ScrapedMetrics
from twopc.errors import Unavailable
from twopc.metrics.description_metrics import DESCRIBED
from twopc.metrics.jobs import JobMetrics
from twopc.protocol.figures import OPERATOR
from twopc.protocol.ids import AttemptId
from twopc.protocol.job_description import JobDescription

JOB = {"job_name": "flights"}


def scraped(*jobs: JobDescription) -> ScrapedMetrics:
    return ScrapedMetrics(generate_latest(JobMetrics(lambda: jobs).registry).decode())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("twopc_job_attempt", 3),
        ("twopc_job_attempt_start_timestamp_seconds", 40),
        ("twopc_job_subtasks", 2),
        ("twopc_job_subtasks_attached", 1),
        ("twopc_job_checkpoint_interval_seconds", 2.5),
        ("twopc_job_number_of_in_progress_checkpoints", 1),
        ("twopc_job_number_of_completed_checkpoints_total", 7),
        ("twopc_job_number_of_failed_checkpoints_total", 2),
        ("twopc_job_kept_checkpoints", 3),
        ("twopc_job_last_completed_checkpoint_id", 7),
        ("twopc_job_last_checkpoint_completed_timestamp_seconds", 70.25),
        ("twopc_job_last_checkpoint_duration_seconds", 0.25),
        ("twopc_job_last_checkpoint_size_bytes", 4_096),
        ("twopc_job_last_checkpoint_restore_timestamp_seconds", 40),
        ("twopc_job_oldest_pending_committable_timestamp_seconds", 60),
    ],
)
def test_a_scrape_has_what_is_known_of_a_job(name: str, value: float) -> None:
    assert scraped(RUNNING).value(name, **JOB) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("twopc_subtask_attached", 1),
        ("twopc_subtask_num_records_in_total", 100),
        ("twopc_subtask_num_records_out_total", 90),
        ("twopc_subtask_pending_records", 7),
        ("twopc_subtask_pending_committables", 2),
        ("twopc_subtask_transaction_open", 1),
        ("twopc_subtask_slow_function", 1),
    ],
)
def test_a_scrape_has_what_a_subtask_said_last(name: str, value: float) -> None:
    assert scraped(RUNNING).value(name, **JOB, subtask_index="0") == value


def test_a_transaction_that_several_checkpoints_name_is_counted_once() -> None:
    found = scraped(RUNNING)
    assert found.value("twopc_job_pending_committables", **JOB, committer="subtask") == 1
    assert found.value("twopc_job_pending_committables", **JOB, committer="global") == 1


def test_records_that_went_wrong_are_counted_by_source_and_operator() -> None:
    found = scraped(RUNNING)
    labels = JOB | {"subtask_index": "0", "source": "orders", OPERATOR: "map(priced)"}
    assert found.value("twopc_source_num_records_skipped_total", **labels) == 3
    assert found.value("twopc_source_num_dead_letters_total", **labels) == 2


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("twopc_operator_num_records_in_total", {"operator_name": "orders"}, 100),
        ("twopc_operator_num_records_out_total", {"operator_name": "priced"}, 90),
        ("twopc_operator_num_bytes_in_total", {"operator_name": "orders"}, 10_000),
        ("twopc_operator_num_bytes_out_total", {"operator_name": "priced"}, 900),
        ("twopc_operator_num_late_records_total", {"operator_name": "per-minute"}, 4),
        ("twopc_subtask_oldest_transaction_start_timestamp_seconds", {}, 1_700_000_000.25),
        ("twopc_subtask_accumulate_busy_time_seconds_total", {}, 1.5),
        ("twopc_operator_accumulate_busy_time_seconds_total", {"operator_name": "count"}, 1.2),
        ("twopc_subtask_batch_records", {}, 64),
        ("twopc_split_pending_records", {"source": "orders", "split": "orders-topic[3]"}, 7),
        (
            "twopc_operator_current_input_watermark_timestamp_seconds",
            {"operator_name": "per-minute", "partition": "3"},
            1_700_000_000.5,
        ),
    ],
)
def test_what_a_subtask_measures_is_told_by_operator_and_split(name: str, labels: dict[str, str], value: float) -> None:
    assert scraped(RUNNING).value(name, **JOB, subtask_index="0", **labels) == value


def test_a_job_is_in_one_phase() -> None:
    found = scraped(RUNNING)
    assert found.value("twopc_job_phase", **JOB, phase="checkpoint in flight") == 1
    assert len(found.families["twopc_job_phase"].samples) == 1


def test_what_is_not_known_has_no_sample() -> None:
    found = scraped(IDLE)
    assert found.value("twopc_job_attempt", **JOB) == 0
    for name in ("last_completed_checkpoint_id", "attempt_start_timestamp_seconds", "checkpoint_interval_seconds"):
        assert found.value(f"twopc_job_{name}", **JOB) is None
    assert found.families["twopc_subtask_num_records_in"].samples == []


def test_a_lag_that_is_unknown_is_not_called_none() -> None:
    (first, second) = RUNNING.subtasks
    assert first.progress is not None
    unknown = replace(first, progress=replace(first.progress, lag=None))
    found = scraped(replace(RUNNING, subtasks=(unknown, second)))
    assert found.families["twopc_subtask_pending_records"].samples == []


def test_jobs_of_one_coordinator_are_told_apart() -> None:
    found = scraped(RUNNING, replace(RUNNING, job="orders", attempt=AttemptId(9)))
    assert found.value("twopc_job_attempt", job_name="flights") == 3
    assert found.value("twopc_job_attempt", job_name="orders") == 9


def test_a_coordinator_that_does_not_answer_is_said_to_be_down_and_no_job_is_made_up() -> None:
    def silent() -> Sequence[JobDescription]:
        raise Unavailable("the coordinator is too busy to answer: ask again")

    found = ScrapedMetrics(generate_latest(JobMetrics(silent).registry).decode())
    assert found.value("twopc_coordinator_up") == 0
    assert found.families["twopc_job_attempt"].samples == []


def test_the_same_is_there_as_openmetrics() -> None:
    text = generate_openmetrics(JobMetrics(lambda: [RUNNING]).registry).decode()
    families = {family.name: family for family in parse_openmetrics(text)}
    (sample,) = families["twopc_job_number_of_completed_checkpoints"].samples
    assert (sample.name, sample.value) == ("twopc_job_number_of_completed_checkpoints_total", 7)


def test_no_label_has_a_name_that_prometheus_keeps_for_itself() -> None:
    assert {"job", "instance", "le", "quantile"}.isdisjoint(label for metric in DESCRIBED for label in metric.labels)
