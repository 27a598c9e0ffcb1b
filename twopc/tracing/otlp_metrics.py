"""Sends metrics to a collector by OTLP over gRPC: the same that Prometheus scrapes, by OpenTelemetry, an extra.

Where to and how often OpenTelemetry's own variables say (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_METRIC_EXPORT_INTERVAL in
milliseconds, ...). Names and labels are those of Prometheus without `_total`, which a collector puts back for it.
Counters are cumulative, from when this process began to send.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from twopc.errors import ConfigurationError
from twopc.tracing.otel import refuse_other_ways, resource

try:
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        Gauge,
        Histogram,
        HistogramDataPoint,
        Metric,
        MetricsData,
        NumberDataPoint,
        ResourceMetrics,
        ScopeMetrics,
        Sum,
    )
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
except ImportError as error:
    raise ConfigurationError(
        f"metrics by OpenTelemetry need it, and it isn't here ({error}): pip install 'twopc-streams[otel]'"
    ) from error

INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"
INTERVAL_MS = 60_000
CLOSE_SECONDS = 5.0

_UNITS = {"_seconds": "s", "_bytes": "By"}
_CUMULATIVE = AggregationTemporality.CUMULATIVE

Families = Callable[[], Iterable[Any]]
"""Collects families of metrics, as the client of Prometheus has them."""


@contextmanager
def metrics_sent(collect: Families) -> Iterator[None]:
    """Send them at intervals, and once more at the end; raise ConfigurationError where they can't be sent."""
    refuse_other_ways("METRICS")
    interval, ended, sender = _interval(), threading.Event(), _Sender(collect)

    def run() -> None:
        while not ended.wait(interval):
            sender.send()
        sender.send()

    thread = threading.Thread(target=run, name="twopc-otlp-metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(CLOSE_SECONDS)
        sender.close()


class _Sender:
    """Used by one thread, but for `close`."""

    def __init__(self, collect: Families) -> None:
        self._collect = collect
        self._exporter = OTLPMetricExporter()
        self._resource = resource()
        self._began = time.time_ns()

    def send(self) -> None:
        """Send what there is now. What does not arrive is told by the next: nothing is kept for it."""
        metrics = [metric_of(family, self._began, time.time_ns()) for family in self._collect()]
        scope = ScopeMetrics(InstrumentationScope("twopc"), [each for each in metrics if each.data.data_points], "")
        self._exporter.export(MetricsData([ResourceMetrics(self._resource, [scope], "")]))

    def close(self) -> None:
        # Else it would go on trying where nobody answers.
        self._exporter.shutdown()


def metric_of(family: Any, began: int, now: int) -> Metric:
    """Return a family of metrics as OpenTelemetry has it; both times are Unix nanoseconds."""
    unit = next((unit for suffix, unit in _UNITS.items() if family.name.endswith(suffix)), "")
    match family.type:
        case "histogram":
            data: Any = Histogram(list(_histograms(family, began, now)), _CUMULATIVE)
        case "counter":
            counted = (sample for sample in family.samples if sample.name.endswith("_total"))
            data = Sum([_point(sample, began, now) for sample in counted], _CUMULATIVE, is_monotonic=True)
        case _:
            data = Gauge([_point(sample, None, now) for sample in family.samples])
    return Metric(family.name, family.documentation, unit, data)


def _point(sample: Any, began: int | None, now: int) -> NumberDataPoint:
    return NumberDataPoint(sample.labels, began, now, float(sample.value))


def _histograms(family: Any, began: int, now: int) -> Iterator[HistogramDataPoint]:
    """Yield a point for each set of labels: Prometheus counts all up to a bound, OpenTelemetry those of each bucket."""
    found: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for sample in family.samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        parts = found.setdefault(tuple(sorted(labels.items())), {"bounds": [], "up_to": [], "sum": 0.0})
        if sample.name.endswith("_bucket"):
            parts["bounds"].append(float(sample.labels["le"]))
            parts["up_to"].append(int(sample.value))
        elif sample.name.endswith("_sum"):
            parts["sum"] = sample.value
    for key, parts in found.items():
        up_to = parts["up_to"]
        counts = [after - before for before, after in zip([0, *up_to], up_to, strict=False)]
        yield HistogramDataPoint(
            attributes=dict(key),
            start_time_unix_nano=began,
            time_unix_nano=now,
            count=up_to[-1],
            sum=parts["sum"],
            bucket_counts=counts,
            explicit_bounds=parts["bounds"][:-1],
            min=0.0,
            max=0.0,
        )


def _interval() -> float:
    """Return the seconds from one sending to the next."""
    written = os.environ.get(INTERVAL, "") or str(INTERVAL_MS)
    if not written.isdecimal() or int(written) == 0:
        raise ConfigurationError(f"{INTERVAL} is {written!r}: say how many milliseconds, as {INTERVAL_MS}")
    return int(written) / 1000
