"""The registry of one process: what its coordinator says of its jobs when asked, what it has counted, and itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family

from twopc.errors import TwoPhaseCommitError
from twopc.metrics.description_metrics import DESCRIBED
from twopc.metrics.event_counts import EventCounts
from twopc.metrics.metric import JOB, Kind, Metric
from twopc.protocol.job_description import JobDescription

Describe = Callable[[], Sequence[JobDescription]]
"""Asks the coordinator where its jobs stand; raises a TwoPhaseCommitError if it does not answer."""

_FAMILIES: Final = {Kind.COUNTER: CounterMetricFamily, Kind.GAUGE: GaugeMetricFamily}


class JobMetrics:
    """All metrics of one process. `note` is for the events of its jobs, on any thread."""

    def __init__(self, describe: Describe) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(_Described(describe))
        ProcessCollector(registry=self.registry)
        self.note = EventCounts(self.registry).note


class _Described:
    """A collector of the client's."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe

    def collect(self) -> Iterator[Family]:
        try:
            jobs, answers = self._describe(), True
        except TwoPhaseCommitError:
            jobs, answers = (), False
        up = GaugeMetricFamily("twopc_coordinator_up", "Whether the coordinator of this process's jobs answers.")
        up.add_metric([], answers)
        yield up
        for metric in DESCRIBED:
            yield family(metric, jobs)


def family(metric: Metric, jobs: Iterable[JobDescription]) -> Family:
    """Return a metric with its samples of these jobs."""
    made = _FAMILIES[metric.kind](metric.name, metric.help, labels=[JOB, *metric.labels])
    for job in jobs:
        for labels, value in metric.read(job):
            made.add_metric([job.job, *labels], value)
    return made
