"""In whose transactions the positions of the input go, and where they go beside them."""

from __future__ import annotations

from typing import cast

import pytest

from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.driver.witness import group_of_transactions
from twopc.graph import Pipeline
from twopc.protocol.ids import AttemptId
from twopc.sink import SharedTransaction, Sink
from twopc.source import Source

CONTEXT = JobContext("flights", AttemptId(1), 1, RunSettings())


class On:
    """A source or a sink of a cluster, or of none."""

    def __init__(self, cluster: str | None, group: str | None = "g") -> None:
        self._cluster = cluster
        self._group = group

    def cluster(self, context: JobContext) -> str | None:
        return self._cluster

    def shared_transaction(self, context: JobContext) -> SharedTransaction | None:
        return None if self._cluster is None else SharedTransaction("all", self._cluster)

    def group(self, context: JobContext) -> str | None:
        return self._group


def chosen(source: On, sink: On) -> str | None:
    reads, writes = cast(Source, source), cast(Sink, sink)
    return group_of_transactions(Pipeline("source-1", reads, (), "sink-1", writes), CONTEXT)


def test_on_one_cluster_the_transactions_carry_the_positions() -> None:
    assert chosen(On("one"), On("one")) == "g"


@pytest.mark.parametrize(
    ("source", "sink"),
    [(On("one"), On("another")), (On("one"), On(None)), (On(None), On("one")), (On("one", group=None), On("one"))],
    ids=["two clusters", "no Kafka sink", "no Kafka source", "no group"],
)
def test_elsewhere_they_are_committed_beside_them(source: On, sink: On) -> None:
    assert chosen(source, sink) is None
