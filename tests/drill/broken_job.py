"""A job that breaks its promises: its sink swallows and repeats records, and its state is not made by its input."""

import os
import time
from typing import Any

from twopc import DeliveryGuarantee, Job, KafkaSink, KafkaSource
from twopc.kafka.output.topic_output import TopicOutput
from twopc.kafka.output.writer_config import WriterConfig
from twopc.kafka.topics.subtask_client import SubtaskClient
from twopc.kafka.transactions.transactional import TransactionalWriter
from twopc.record import Batch

NAME = os.environ["BROKEN_JOB"]
SWALLOWED, REPEATED, EVERY = 7, 13, 100


class UnreliableWriter(TransactionalWriter):
    """Of a hundred records of a partition one is missing, and one is there twice."""

    def write(self, batch: Batch) -> int:
        numbers = [(row.offset() or 0) % EVERY for row in batch.rows]
        super().write(batch.take([index for index, number in enumerate(numbers) if number != SWALLOWED]))
        super().write(batch.take([index for index, number in enumerate(numbers) if number == REPEATED]))
        return len(batch)


def unreliable(config: WriterConfig, output: TopicOutput, client: SubtaskClient) -> UnreliableWriter:
    return UnreliableWriter(config, output, client, client.identity, timeout_ms=60_000)


class UnreliableSink(KafkaSink):
    writers = {**KafkaSink.writers, DeliveryGuarantee.EXACTLY_ONCE: unreliable}  # noqa: RUF012


def drift(held: Any, value: bytes) -> tuple[Any, bytes]:
    """Keep the time, which no second run has."""
    return str(time.time_ns()), value


job = Job(NAME)
job.source(KafkaSource(f"{NAME}-in")).stateful_map(drift, name="drift").sink(UnreliableSink(f"{NAME}-out"))
