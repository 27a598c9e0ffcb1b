"""A `read_committed` reader of the output beside the run: counts, and how long each record took to become visible."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import closing

from twopc.errors import Unavailable
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.input.topic_reader import follow
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.record import Batch

POLL_SECONDS = 0.02
STALL_SECONDS = 60.0

TUNING = {"fetch.min.bytes": 1, "fetch.wait.max.ms": 10}
"""What is visible is to be seen at once."""


class OutputReader:
    """Reads topics from their starts, on a thread of its own. `latencies_ms`: of each record, against its timestamp.

    `stamps_ms` are the records' timestamps, by topic: with message.timestamp.type=LogAppendTime, when the broker
    appended them.
    """

    def __init__(self, servers: str, topics: Sequence[str], partitions: int) -> None:
        self.stamps_ms: dict[str, list[int]] = {topic: [] for topic in topics}
        self.latencies_ms: list[float] = []
        starts = {TopicPartition(topic, number): Position(0) for topic in topics for number in range(partitions)}
        self._batches = follow(Cluster(servers, TUNING), starts, poll_seconds=POLL_SECONDS)
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="twopc-bench-reader", daemon=True)
        self._thread.start()

    def finish(self, expected: int) -> None:
        """Wait until so many records were seen, or nothing has come for a minute, then end; raise what went wrong."""
        seen, since = len(self.latencies_ms), time.monotonic()
        while self._failure is None and len(self.latencies_ms) < expected and time.monotonic() - since < STALL_SECONDS:
            time.sleep(POLL_SECONDS)
            if len(self.latencies_ms) > seen:
                seen, since = len(self.latencies_ms), time.monotonic()
        # One more look: a record too many would come now.
        time.sleep(0.5)
        self.close()
        if self._failure is not None:
            raise Unavailable(f"the output could not be read: {self._failure}") from self._failure

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with closing(self._batches) as batches:
                for batch in batches:
                    if batch is not None:
                        self._take(batch)
                    if self._ended.is_set():
                        return
        except Exception as error:  # noqa: BLE001 - raised again by finish()
            self._failure = error

    def _take(self, batch: Batch) -> None:
        now = time.time() * 1000
        for row in batch.rows:
            self.stamps_ms[row.topic() or ""].append(row.timestamp()[1])
        self.latencies_ms.extend(now - row.timestamp()[1] for row in batch.rows)
