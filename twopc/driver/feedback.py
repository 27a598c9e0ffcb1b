"""A job that reads what it writes: warned of, never refused, because a person may mean it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial

from twopc.context import JobContext
from twopc.errors import TwoPhaseCommitError
from twopc.job_connectors import JobSink, JobSource


def feedback_of(source: JobSource, sink: JobSink, context: JobContext) -> Iterator[str]:
    """Yield a warning for each input of the job that is an output too, as far as can be told before it runs."""
    read = list(filter(source.reads_from_elsewhere, sink.outputs))
    return feedback(read, sink.outputs, partial(_is_one_cluster, source, sink, context))


def feedback(inputs: Collection[str], outputs: Collection[str], is_one_cluster: Callable[[], bool]) -> Iterator[str]:
    """Yield a warning for each name in both; only for such a name is asked whether both ends are on one cluster."""
    both = sorted(set(inputs) & set(outputs))
    if both and is_one_cluster():
        for name in both:
            yield (
                f"{name!r} is input and output of this job: it reads what it writes, without end unless its functions "
                "drop that. Give the output a place of its own"
            )


def _is_one_cluster(source: JobSource, sink: JobSink, context: JobContext) -> bool:
    """Whether source and sink are on one cluster, as far as can be told: a sink without transactions names none."""
    try:
        clusters = {group.cluster for group in sink.groups(context)} - {None}
        with source.open_planner(context) as planner:
            return not clusters or not clusters.isdisjoint(planner.clusters())
    except TwoPhaseCommitError:
        return True
