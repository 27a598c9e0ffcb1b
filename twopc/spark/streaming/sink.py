"""The sink for `writeStream.foreachBatch`: what Spark calls with each micro-batch."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame

from twopc.config import require_assertions
from twopc.errors import ConfigurationError
from twopc.spark.streaming.frame_tasks import FrameTasks
from twopc.spark.streaming.observer import Observer
from twopc.spark.streaming.options import SinkOptions, timeout_of
from twopc.spark.streaming.query_run import QueryRun, claimed
from twopc.spark.streaming.steps import batch_steps
from twopc.spark.streaming.task import QUERY_ID, TaskSpec

log = logging.getLogger(__name__)


class KafkaBatchSink:
    """Called by Spark with one batch after the other, as `foreachBatch` wants it: see `kafka_sink`."""

    def __init__(self, options: SinkOptions, observer: Observer | None = None) -> None:
        self._options = options
        self._observer = observer or Observer()
        self._run: QueryRun | None = None

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Write a batch so that readers see it once, however often Spark begins it."""
        query = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        if not query:
            raise ConfigurationError("kafka_sink works for streaming queries only: give it to writeStream.foreachBatch")
        try:
            self._write(query, frame, batch)
        except BaseException:
            self._observer.failed()
            raise

    def _write(self, query: str, frame: DataFrame, batch: int) -> None:
        # Taken out meanwhile: whoever calls while this one works, a query that was started again, begins its own run.
        run, self._run = self._run, None
        if run is None or (run.query, run.next_batch) != (query, batch):
            self._let_go(run)
            run = QueryRun(self._options, query, claimed(self._options), self._observer)
        tasks = FrameTasks(frame, TaskSpec(run.config, batch, self._options.topic))
        try:
            run.do(batch, batch_steps(batch, self._options.first_batch, self._options.accept_loss), tasks)
        except BaseException:
            run.close()
            raise
        self._run = run

    def close(self) -> None:
        """Let go of the connections to the brokers, of which a query that still runs makes new ones, and of metrics."""
        run, self._run = self._run, None
        self._let_go(run)
        self._observer.close()

    @staticmethod
    def _let_go(run: QueryRun | None) -> None:
        if run is not None:
            run.close()


def kafka_sink(
    topic: str | None = None,
    *,
    name: str,
    decisions: str,
    bootstrap_servers: str,
    properties: Mapping[str, Any] | None = None,
    transaction_timeout: str | timedelta | None = None,
    first_batch: int = 0,
    accept_loss: Iterable[str] = (),
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
) -> KafkaBatchSink:
    """Return a function for `writeStream.foreachBatch` that writes every row to Kafka exactly once.

    Rows have the columns of Spark's own Kafka sink: `value`, and where there are any `key`, `topic` (where none is
    given here), `headers`, `timestamp`; `read_committed` readers see a batch's rows when it is committed.

    name: of the query, for its transactional ids and its decisions; no two queries or jobs on one cluster may share it.
    decisions: a folder, or a URL of an object store, that every future driver of the query sees, beside its
        checkpointLocation: what is decided about each batch is stored there, once, before it is committed.
    properties: librdkafka's, for the producers and for how to get at the brokers.
    transaction_timeout: how long a transaction may take, and a decided batch may wait for the query to be started
        again ("15m"); None takes the longest that the brokers allow.
    first_batch: where the query had another sink before, the batch from which it has this one.
    accept_loss: names of transactions whose output a person gives up: the error that tells of the loss names them.
    metrics_port, metrics_host: where to serve /metrics (Prometheus), /healthz and /readyz until the sink is closed;
        port 0 takes a free one, None serves nothing.

    Not guaranteed: anything about a source that does not replay the same rows, or about a query of which the result
    depends on more than its input. Raises ConfigurationError.
    """
    require_assertions()
    options = SinkOptions(
        name=name,
        decisions=str(decisions),
        bootstrap_servers=bootstrap_servers,
        topic=topic,
        first_batch=first_batch,
        accept_loss=frozenset(accept_loss),
        transaction_timeout_ms=timeout_of(transaction_timeout),
        properties=dict(properties or {}),
    )
    if metrics_port is None:
        return KafkaBatchSink(options)
    # No query without a port pays for it.
    from twopc.spark.streaming.served_metrics import ServedMetrics

    return KafkaBatchSink(options, ServedMetrics(name, metrics_host, metrics_port))
