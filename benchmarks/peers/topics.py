"""The topics of a comparison: inputs, filled once for all who read them, and outputs, read back to the last record."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from peers.case import Case
from peers.workload import InputRecord, Judge, key_of, timestamp_of
from peers.workloads import WORKLOADS
from twopc.errors import Unavailable
from twopc.kafka.clients.client_config import producer_config
from twopc.testing.topics import create_topic

STALL_SECONDS = 60.0
LARGEST_MESSAGE = 2_000_000
APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}
"""What counts is when the broker appended a record, not the timestamp that the record brought."""


class Inputs:
    """Fills each input topic once."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._filled: set[str] = set()

    def topic(self, case: Case) -> str:
        """Return the input of this case, which is there and full."""
        return self._full(case.input_topic, case, _records(case))

    def second(self, case: Case) -> str:
        """Return the second topic that this case reads, which is there and full; empty where it reads one."""
        second = WORKLOADS[case.job].second(case)
        return "" if second is None else self._full(second.topic, case, second.records)

    def _full(self, topic: str, case: Case, records: Iterable[InputRecord]) -> str:
        if topic not in self._filled:
            create_topic(self._servers, topic, case.partitions)
            self._fill(topic, case.partitions, records)
            self._filled.add(topic)
        return topic

    def _fill(self, topic: str, partitions: int, records: Iterable[InputRecord]) -> None:
        """Write the records; that all have arrived, the ends say: a report for each would cost more than the rest."""
        tuning = {"linger.ms": 20, "queue.buffering.max.messages": 100_000, "message.max.bytes": LARGEST_MESSAGE}
        producer = Producer(producer_config(self._servers, tuning))
        written = 0
        for key, value, timestamp in records:
            while True:
                try:
                    producer.produce(topic, value, key, timestamp=timestamp)
                    break
                except BufferError:
                    producer.poll(0.05)
            written += 1
        left = producer.flush(STALL_SECONDS)
        if left or committed_end(self._servers, topic, partitions) != written:
            raise Unavailable(f"not all of {written:,} records arrived in {topic}")


def _records(case: Case) -> Iterator[InputRecord]:
    make = WORKLOADS[case.job].values(case)
    for number in range(case.records):
        yield key_of(number, case.keys), make(number), timestamp_of(number)


def committed_end(servers: str, topic: str, partitions: int) -> int:
    """Return the sum of the partitions' last stable offsets: records that are visible, and markers before them."""
    admin = AdminClient({"bootstrap.servers": servers})
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    asked = {TopicPartition(topic, number): latest for number in range(partitions)}
    deadline = time.monotonic() + STALL_SECONDS
    while True:
        answers = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=10)
        try:
            return sum(answer.result().offset for answer in answers.values())
        except KafkaException:
            # A busy broker may not be ready to speak for a topic that it has just created.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def read_output(servers: str, topic: str, partitions: int, judge: Judge) -> Counter[int]:
    """Show the judge all that is visible; return how many records were appended in which millisecond."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "twopc-benchmark-judge",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 5,
            "fetch.message.max.bytes": 10_000_000,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    stamps: Counter[int] = Counter()
    unfinished, last = set(range(partitions)), time.monotonic()
    try:
        while unfinished:
            messages = consumer.consume(1_000, 0.2)
            if messages:
                last = time.monotonic()
            elif time.monotonic() - last > STALL_SECONDS:
                raise Unavailable(f"{topic} could not be read to its end: nothing came for {STALL_SECONDS:.0f} s")
            unfinished -= _take(messages, judge, stamps)
    finally:
        consumer.close()
    return stamps


def _take(messages: list[Message], judge: Judge, stamps: Counter[int]) -> set[int | None]:
    """Return the partitions that have ended."""
    ended: set[int | None] = set()
    for message in messages:
        error = message.error()
        if error is None:
            judge.take(message.key(), message.value())
            stamps[message.timestamp()[1]] += 1
        elif error.code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())
        else:
            raise KafkaException(error)
    return ended
