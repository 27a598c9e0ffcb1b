"""Whether the sink's transactions carry the job's positions, as the witness of their outcome, or who commits those."""

from __future__ import annotations

import logging

from twopc.context import JobContext
from twopc.graph import Pipeline

log = logging.getLogger(__name__)


def group_of_transactions(pipeline: Pipeline, context: JobContext) -> str | None:
    """The consumer group to which the transactions commit the positions; None where that happens beside them.

    A transaction ends on one cluster: where the source's group is kept by another, it can't carry the positions.
    """
    group, shared = pipeline.source.group(context), pipeline.sink.shared_transaction(context)
    if group is None or shared is None or shared.cluster is None:
        return None
    into = shared.cluster
    kept_by = pipeline.source.cluster(context)
    if kept_by == into:
        return group
    log.info(
        "the input is on cluster %s, the output on %s: the group %s is told of positions after each commit, and no "
        "transaction has them as a witness",
        kept_by,
        into,
        group,
    )
    return None
