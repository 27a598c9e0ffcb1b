"""Writes a load to a topic, at a rate if one is wanted; and judges whether a topic holds a load."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from twopc.errors import NotJudged, TwoPhaseCommitError
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.output.topic_writer import TopicWriter
from twopc.kafka.place import Place
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.topics.preflight import require_topics
from twopc.verify.findings import Verdict
from twopc.verify.history import Expected
from twopc.verify.judge import verdict_on
from twopc.verify.load import LoadPlan
from twopc.verify.topics import extent
from twopc.verify.transaction_lookup import TopicLog

POLL_EVERY = 1_000

ProgressCallback = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class ProducedLoad:
    """The result of producing a load."""

    acknowledged: int
    failed: int
    seconds: float
    interrupted: bool
    first_failure: str = ""


def produce(plan: LoadPlan, cluster: Cluster, watch: ProgressCallback = lambda done: None) -> ProducedLoad:
    """Write the load; on Ctrl-C wait for what is under way, and say how far it went."""
    with cluster.client() as client:
        require_topics(client, (plan.topic,), "output")
    return _LoadRun(plan, cluster, watch).run()


class _LoadRun:
    def __init__(self, plan: LoadPlan, cluster: Cluster, watch: ProgressCallback) -> None:
        self._plan = plan
        self._watch = watch
        self._began = time.monotonic()
        linger = {"linger.ms": 5 if plan.rate is None else 1}
        self._writer = TopicWriter(replace(cluster, properties={**linger, **cluster.properties}))

    def run(self) -> ProducedLoad:
        interrupted = False
        try:
            self._write_all()
        except KeyboardInterrupt:
            interrupted = True
        writer = self._writer
        writer.flush()
        acknowledged = writer.written - writer.failed
        self._watch(acknowledged)
        return ProducedLoad(
            acknowledged, writer.failed, time.monotonic() - self._began, interrupted, writer.first_failure
        )

    def _write_all(self) -> None:
        rate = self._plan.rate
        every = POLL_EVERY if rate is None else max(1, min(POLL_EVERY, rate // 100))
        for record in self._plan.all():
            if self._writer.written % every == 0:
                self._pause(rate)
                self._watch(self._writer.written - self._writer.under_way)
            self._writer.write(self._plan.topic, record.value, record.key)

    def _pause(self, rate: int | None) -> None:
        """Wait until the next record is due, and take the reports that have arrived."""
        ahead = 0.0 if rate is None else self._writer.written / rate - (time.monotonic() - self._began)
        self._writer.poll(max(0.0, ahead))
        while rate is not None and (ahead := self._writer.written / rate - (time.monotonic() - self._began)) > 0:
            time.sleep(ahead)


def check(plan: LoadPlan, cluster: Cluster) -> Verdict:
    """Judge whether the topic holds this load and nothing else; raise NotJudged if that can't be told."""
    load = TopicPartition("load", 0)
    expected = (Expected(Place(load, number), record.key, record.value) for number, record in enumerate(plan.all()))
    try:
        with cluster.client() as client:
            ranges = extent(client, (plan.topic,), "output").ranges
        return verdict_on(plan.topic, expected, TopicLog(cluster).see(ranges, {}))
    except TwoPhaseCommitError as error:
        raise NotJudged(str(error)) from error
