"""Metrics on the wire to a collector: the same as a scrape has."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="OpenTelemetry is an extra: twopc-streams[otel]")

from tests.job_events import event
from tests.metrics.kit import RUNNING, ScrapedMetrics
from tests.tracing.receiver import Receiver, attributes, receiving
from twopc import events
from twopc.errors import ConfigurationError
from twopc.metrics.health import CoordinatorHealth
from twopc.metrics.jobs import JobMetrics
from twopc.metrics.pages import MetricsPages
from twopc.testing.ports import free_port
from twopc.tracing.otlp_metrics import INTERVAL, metrics_sent
from twopc.web.answer import Answer, Question

PATIENCE_SECONDS = 60


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiving() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{found.address}")
        yield found


@pytest.fixture
def metrics() -> JobMetrics:
    found = JobMetrics(lambda: [RUNNING])
    for duration in (20.0, 30.0, 700.0, 400_000.0):
        found.note(event(events.CheckpointCompleted, duration_ms=duration))
    return found


def value_of(point: Any) -> float:
    return float(getattr(point, point.WhichOneof("value")))


def test_a_collector_gets_what_a_scrape_has(receiver: Receiver, metrics: JobMetrics) -> None:
    with metrics_sent(metrics.registry.collect):
        pass
    [sent] = receiver.metrics.sent
    page = MetricsPages(metrics.registry, CoordinatorHealth(lambda: ())).answer(Question("/metrics"))
    assert isinstance(page, Answer)
    scraped = ScrapedMetrics(page.body.decode())
    names = {name for name, family in scraped.families.items() if family.samples and not name.endswith("_created")}
    assert set(sent) == names
    for name in sorted(name for name in names if scraped.families[name].type == "gauge" and name.startswith("twopc_")):
        for point in sent[name].gauge.data_points:
            assert value_of(point) == scraped.value(name, **attributes(point)), name


def test_counters_only_grow_and_durations_are_buckets(receiver: Receiver, metrics: JobMetrics) -> None:
    with metrics_sent(metrics.registry.collect):
        pass
    [sent] = receiver.metrics.sent
    completed = sent["twopc_job_number_of_completed_checkpoints"].sum
    assert (completed.is_monotonic, completed.aggregation_temporality) == (True, 2)
    [point] = completed.data_points
    assert (value_of(point), attributes(point)) == (7.0, {"job_name": RUNNING.job})
    assert 0 < point.start_time_unix_nano <= point.time_unix_nano
    [took] = sent["twopc_job_checkpoint_duration_seconds"].histogram.data_points
    assert (took.count, round(took.sum, 3)) == (4, 400.75)
    counted = dict(zip([*took.explicit_bounds, float("inf")], took.bucket_counts, strict=True))
    assert {bound: count for bound, count in counted.items() if count} == {0.025: 1, 0.05: 1, 1.0: 1, float("inf"): 1}
    assert sent["twopc_job_checkpoint_duration_seconds"].unit == "s"


def test_they_are_sent_as_often_as_opentelemetry_says(
    receiver: Receiver, metrics: JobMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(INTERVAL, "10")
    deadline = time.monotonic() + PATIENCE_SECONDS
    with metrics_sent(metrics.registry.collect):
        while len(receiver.metrics.sent) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert len(receiver.metrics.sent) >= 3


@pytest.mark.parametrize(
    ("variable", "value"), [(INTERVAL, "often"), (INTERVAL, "0"), ("OTEL_METRICS_EXPORTER", "prometheus")]
)
def test_what_cannot_be_is_refused_by_the_name_of_the_variable(
    metrics: JobMetrics, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=f"{variable} is '{value}'"), metrics_sent(metrics.registry.collect):
        pass


def test_a_collector_that_is_away_holds_the_end_up_for_some_seconds_only(
    metrics: JobMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setattr("twopc.tracing.otlp_metrics.CLOSE_SECONDS", 0.2)
    began = time.monotonic()
    with metrics_sent(metrics.registry.collect):
        pass
    assert time.monotonic() - began < PATIENCE_SECONDS
