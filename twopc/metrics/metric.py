"""One metric of a job, as data: its name, its meaning, and how it is read from the job's description. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from twopc.protocol.figures import Figure
from twopc.protocol.job_description import JobDescription, SubtaskDescription

Sample = tuple[tuple[str, ...], float]
"""The values of a metric's own labels, and its value."""

JOB = "job_name"
"""The label that every metric has. Not `job`: that is Prometheus's own, and wins."""

SUBTASK = "subtask_index"


class Kind(Enum):
    """The kinds of metrics: a counter only grows, but for restarts."""

    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that a job's description holds. A counter's name is without `_total`, which its samples end with."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    read: Callable[[JobDescription], Iterable[Sample]]


def of_job(name: str, kind: Kind, help: str, read: Callable[[JobDescription], float | None]) -> Metric:  # noqa: A002
    """Return a metric with one value a job; None is for not known, and gives no sample."""

    def samples(job: JobDescription) -> Iterable[Sample]:
        value = read(job)
        return () if value is None else (((), value),)

    return Metric(f"twopc_job_{name}", kind, help, (), samples)


def of_subtask(name: str, kind: Kind, help: str, read: Callable[[SubtaskDescription], float | None]) -> Metric:  # noqa: A002
    """Return a metric with one value a subtask; None is for not known, and gives no sample."""

    def samples(job: JobDescription) -> Iterable[Sample]:
        for subtask in job.subtasks:
            value = read(subtask)
            if value is not None:
                yield (str(subtask.subtask),), value

    return Metric(f"twopc_subtask_{name}", kind, help, (SUBTASK,), samples)


def counted(figure: Figure) -> Metric:
    """Return the metric of a figure that subtasks count, with its labels besides the subtask's."""

    def samples(job: JobDescription) -> Iterable[Sample]:
        for subtask in job.subtasks:
            if subtask.progress is not None and subtask.progress.figures is not None:
                values: Counter[tuple[str, ...]] = Counter()
                for labels, value in figure.values_in(subtask.progress.figures):
                    # Of a split that is a file, the coordinator knows the name without its folder.
                    values[labels] += value
                for labels, value in values.items():
                    yield (str(subtask.subtask), *labels), value / figure.scale

    kind = Kind.COUNTER if figure.is_counter else Kind.GAUGE
    return Metric(f"twopc_{figure.name}", kind, figure.help, (SUBTASK, *figure.labels), samples)
