"""The metrics of one streaming query of Spark's, as its sink sees it, and whether it is well."""

from __future__ import annotations

import time
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from twopc.metrics.event_counts import DURATIONS
from twopc.metrics.health import Health

QUERY: Final = "query_name"


class QueryMetrics:
    """Counted by one thread, in the driver of a query; any other may read the registry."""

    def __init__(self, query: str) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._pending_since = 0.0
        ProcessCollector(registry=self.registry)

        def counter(name: str, text: str) -> Counter:
            return Counter(f"twopc_query_{name}", text, [QUERY], registry=self.registry).labels(query)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"twopc_query_{name}", text, [QUERY], registry=self.registry).labels(query)

        def seconds(name: str, text: str) -> Histogram:
            made = Histogram(f"twopc_query_{name}_seconds", text, [QUERY], registry=self.registry, buckets=DURATIONS)
            return made.labels(query)

        self.batches = counter("batches", "Batches that this driver has committed.")
        self.replayed = counter("batches_replayed", "Batches that were decided before, and were run again.")
        self.records = counter("num_records_out", "Records pre-committed.")
        self.size = counter("num_bytes_out", "Bytes of keys and values pre-committed.")
        self.lost = counter("transactions_lost", "Transactions of a decided batch that were found to be lost.")
        self.pending = gauge("pending_committables", "Transactions pre-committed and not committed.")
        self.pending_since = gauge(
            "oldest_pending_committable_timestamp_seconds", "Since when some are pending; 0 where none are."
        )
        self.open = gauge("transactions_open", "Transactions open when the brokers were last asked, of whatever batch.")
        self.batch = gauge("last_committed_batch", "The number of the newest batch that this driver has committed.")
        self.committed_at = gauge("last_batch_committed_timestamp_seconds", "When that was.")
        self.write = seconds("write_duration", "How long the tasks took to compute and pre-commit a batch.")
        self.decision = seconds("decision_duration", "How long it took to store a decision.")
        self.commit = seconds("commit_duration", "How long it took to commit the transactions of a batch.")

    def committed(self, batch: int) -> None:
        """Take in that a batch is done."""
        self.batches.inc()
        self.batch.set(batch)
        self.committed_at.set(time.time())
        self.are_pending(0)

    def are_pending(self, count: int) -> None:
        """Take in how many transactions are pre-committed and not ended."""
        self.pending.set(count)
        if not count:
            self._pending_since = 0.0
        elif not self._pending_since:
            self._pending_since = time.time()
        self.pending_since.set(self._pending_since)


class QueryHealth(Health):
    """Of the driver of a query: ready while its last batch was committed. Spark ends a query whose batch failed."""

    def __init__(self) -> None:
        self.wrong = "no batch has been committed"

    def live(self) -> str:
        return ""

    def ready(self) -> str:
        return self.wrong
