"""A `read_committed` reader of the output beside the run: counts, and how long each record took to become visible."""

from __future__ import annotations

import threading
import time

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from twopc.errors import Unavailable

BATCH = 2_000
POLL_SECONDS = 0.02
STALL_SECONDS = 60.0


class OutputReader:
    """Reads one topic from its start, on a thread of its own. `latencies_ms`: of each record, against its timestamp.

    `stamps_ms` are the records' timestamps: with message.timestamp.type=LogAppendTime, when the broker appended them.
    """

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.stamps_ms: list[int] = []
        self.latencies_ms: list[float] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "twopc-bench-reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                "fetch.queue.backoff.ms": 5,
                "fetch.wait.max.ms": 10,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="twopc-bench-reader", daemon=True)
        self._thread.start()

    def finish(self, expected: int) -> None:
        """Wait until so many records were seen, or nothing has come for a minute, then end; raise what went wrong."""
        seen, since = len(self.stamps_ms), time.monotonic()
        while self._failure is None and len(self.stamps_ms) < expected and time.monotonic() - since < STALL_SECONDS:
            time.sleep(POLL_SECONDS)
            if len(self.stamps_ms) > seen:
                seen, since = len(self.stamps_ms), time.monotonic()
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
            while not self._ended.is_set():
                self._take(self._consumer.consume(BATCH, POLL_SECONDS))
        except Exception as error:  # noqa: BLE001 - raised again by finish()
            self._failure = error
        finally:
            self._consumer.close()

    def _take(self, messages: list[Message]) -> None:
        now = time.time() * 1000
        for message in messages:
            error = message.error()
            if error is None:
                stamp = message.timestamp()[1]
                self.stamps_ms.append(stamp)
                self.latencies_ms.append(now - stamp)
            elif not error.retriable():
                raise KafkaException(error)
