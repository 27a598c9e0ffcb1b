"""A real broker, asked as `play` asks: each request as it stands, in the very version that the step names."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from kafka.protocol.admin import DescribeTransactionsRequest
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.producer import ProduceRequest
from kafka.protocol.producer.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from kafka.record import MemoryRecordsBuilder

from tests.simulation.broker_model import OFFSETS
from tests.simulation.differential.connection import Connection
from tests.simulation.differential.observed import Answer, Description, VisiblePartition
from tests.simulation.differential.real_reader import RealReader
from tests.simulation.differential.steps import (
    NAMES,
    AddOffsets,
    AddPartition,
    CommitOffsets,
    End,
    FetchOffset,
    Init,
    Produce,
)
from tests.simulation.transaction_coordinator import NOBODY, Producer
from tests.simulation.transaction_tables import Code

SETTLE_S = 60.0
LAPSE_S = 60.0


class RealSide:
    """One sequence: its names begin with `prefix`, its partitions are two of a topic."""

    def __init__(self, connection: Connection, prefix: str, topic: str, partitions: Sequence[int]) -> None:
        self._connection = connection
        self._prefix = prefix
        self._topic = topic
        self._partitions = tuple(partitions)
        self.lapsed_s = 0.0
        self._readers = [RealReader(connection, topic, partition) for partition in self._partitions]

    def init(self, step: Init, expected: Producer | None) -> Answer:
        producer_id, producer_epoch = expected or NOBODY
        request = InitProducerIdRequest(
            transactional_id=self._id(step.name),
            transaction_timeout_ms=step.timeout_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
        answer = self._connection.ask(request, step.version)
        return Answer(Code(answer.error_code), (answer.producer_id, answer.producer_epoch))

    def add_partition(self, step: AddPartition, producer: Producer) -> Answer:
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
            name=self._topic, partitions=[self._partitions[step.partition]]
        )
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id(step.name),
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[topic],
        )
        answer = self._connection.ask(request, step.version)
        (result,) = answer.results_by_topic_v3_and_below
        return Answer(Code(result.results_by_partition[0].partition_error_code))

    def produce(self, step: Produce, producer: Producer, sequence: int, value: str) -> Answer:
        builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1_000)
        builder.append(timestamp=1, key=None, value=value.encode())
        builder.set_producer_state(*producer, sequence, True)
        builder.close()
        topics = ProduceRequest.TopicProduceData
        partition = topics.PartitionProduceData(index=self._partitions[step.partition], records=builder.buffer())
        request = ProduceRequest(
            transactional_id=self._id(step.name),
            acks=-1,
            timeout_ms=10_000,
            topic_data=[topics(name=self._topic, partition_data=[partition])],
        )
        answer = self._connection.ask(request, step.version)
        return Answer(Code(answer.responses[0].partition_responses[0].error_code))

    def add_offsets(self, step: AddOffsets, producer: Producer) -> Answer:
        request = AddOffsetsToTxnRequest(
            transactional_id=self._id(step.name),
            producer_id=producer[0],
            producer_epoch=producer[1],
            group_id=self._prefix,
        )
        return Answer(Code(self._connection.ask(request, step.version).error_code))

    def commit_offsets(self, step: CommitOffsets, producer: Producer) -> Answer:
        topics = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        partition = topics.TxnOffsetCommitRequestPartition(
            partition_index=self._partitions[0],
            committed_offset=step.offset,
            committed_metadata=f"checkpoint={step.offset}",
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self._id(step.name),
            group_id=self._prefix,
            producer_id=producer[0],
            producer_epoch=producer[1],
            topics=[topics(name=self._topic, partitions=[partition])],
        )
        answer = self._connection.ask(request, step.version)
        return Answer(Code(answer.topics[0].partitions[0].error_code))

    def fetch_offset(self, step: FetchOffset) -> Answer:
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=self._topic, partition_indexes=[self._partitions[0]])
        request = OffsetFetchRequest(group_id=self._prefix, topics=[topic], require_stable=step.stable)
        (found,) = self._connection.ask(request, 7).topics[0].partitions
        held = None if found.committed_offset < 0 else (found.committed_offset, found.metadata)
        return Answer(Code(found.error_code), offset=held)

    def end(self, step: End, producer: Producer) -> Answer:
        request = EndTxnRequest(
            transactional_id=self._id(step.name),
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=step.commit,
        )
        answer = self._connection.ask(request, step.version)
        successor = (answer.producer_id, answer.producer_epoch) if step.version >= 5 else NOBODY
        return Answer(Code(answer.error_code), successor)

    def settle(self, name: str) -> Description | None:
        return self._until(name, lambda state: not state.startswith("Prepare"), SETTLE_S)

    def lapse(self) -> None:
        began = time.monotonic()
        for name in NAMES:
            self._until(name, lambda state: state not in ("Ongoing", "PrepareAbort"), LAPSE_S)
        self.lapsed_s += time.monotonic() - began

    def seen(self, partition: int) -> VisiblePartition:
        return self._readers[partition].seen()

    def _until(self, name: str, done: Callable[[str], bool], seconds: float) -> Description | None:
        deadline = time.monotonic() + seconds
        description = self._describe(name)
        while description is not None and not done(description.state):
            assert time.monotonic() < deadline, f"{description} does not come to an end"
            time.sleep(0.001)
            description = self._describe(name)
        return description

    def _describe(self, name: str) -> Description | None:
        answer = self._connection.ask(DescribeTransactionsRequest(transactional_ids=[self._id(name)]), 0)
        (found,) = answer.transaction_states
        if Code(found.error_code) is Code.TRANSACTIONAL_ID_NOT_FOUND:
            return None
        assert found.error_code == 0, f"DescribeTransactions answered {found.error_code}"
        return Description(
            found.transaction_state,
            (found.producer_id, found.producer_epoch),
            found.transaction_timeout_ms,
            tuple(sorted(self._numbers(found.topics))),
            found.transaction_start_time_ms,
        )

    def _numbers(self, topics: Sequence[Any]) -> list[int]:
        ours = [self._partitions.index(each) for row in topics if row.topic == self._topic for each in row.partitions]
        return ours + [OFFSETS for row in topics if row.topic != self._topic for _ in row.partitions]

    def _id(self, name: str) -> str:
        return f"{self._prefix}-{name}"
