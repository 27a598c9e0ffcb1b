"""The exactly-once writer of one subtask: a Kafka transaction per checkpoint, each in a slot of its own.

Pre-commit, in this order: flush; every record delivered; the positions into the transaction, as a witness of its
outcome; the transaction coordinator's own account of what it holds. Only that account goes into the committable. Where
a topic ends that the job reads itself is asked between the flush and the next transaction: see
`twopc.kafka.positions.course`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, runtime_checkable

from confluent_kafka import Consumer, KafkaException

from twopc.errors import CheckpointDeclined, Unavailable
from twopc.faults.points import CrashPoint, reached
from twopc.kafka.clients.control_client import OpenTransaction
from twopc.kafka.clients.failures import error_of, failure
from twopc.kafka.clients.leaders import LeaderClient
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.output.backlog import Backlog
from twopc.kafka.output.topic_output import TopicOutput
from twopc.kafka.output.tracked_producer import ABORT_TIMEOUT_SECONDS, TrackedProducer
from twopc.kafka.output.writer_config import WriterConfig
from twopc.kafka.positions.course import Written
from twopc.kafka.positions.group_offset import group_offset
from twopc.kafka.positions.partition_position import PartitionPosition, partition_positions
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topics.known_topics import known_outputs
from twopc.kafka.topics.output_topics import OutputTopics
from twopc.kafka.topics.topic_identity import TopicIdentity
from twopc.kafka.transactions.claim import refuse_successor
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.kafka.transactions.live_commit import LiveCommit
from twopc.kafka.transactions.missing_markers import MARKERS_BUDGET_SECONDS, SLOW_COMMIT_SECONDS, close_committed
from twopc.kafka.transactions.naming import FIRST_SLOTS, SlotName, transactional_id
from twopc.kafka.transactions.pre_commit import prepared_transaction, require_open
from twopc.kafka.transactions.slots import Slot, SlotPool
from twopc.protocol.facts import Committable, KnownOutput
from twopc.protocol.ids import CheckpointId
from twopc.protocol.messages import Complete
from twopc.record import Batch, RecordsRefused
from twopc.sink import PreCommit, Sink, SinkWriter

INIT_TIMEOUT_SECONDS = 30.0
DESCRIBE_BUDGET_SECONDS = 10.0


@runtime_checkable
class JoiningSink(Protocol):
    """A sink that may join; `twopc.kafka.sink.KafkaSink` is one."""

    def output(self, topics: OutputTopics) -> TopicOutput: ...


@dataclass(slots=True, eq=False)
class Transaction:
    """One open transaction, and how many records were written into it."""

    slot: Slot
    records: int = 0

    def __str__(self) -> str:
        return self.slot.transactional_id


class TransactionalWriter(SinkWriter):
    """The exactly-once writer. `timeout_ms` is its transactions', already checked against the broker's longest."""

    def __init__(
        self, config: WriterConfig, output: TopicOutput, client: LeaderClient, identity: TopicIdentity, timeout_ms: int
    ) -> None:
        self._config = config
        self._timeout_ms = timeout_ms
        self._output = output
        self._outputs = [output]
        self._client = client
        self._identity = identity
        self._patience = config.settings.checkpoint_timeout_ms / 1000
        self._backlog = Backlog(self._patience)
        self._group_metadata: dict[str, object] = {}
        self._witnessed: tuple[PartitionPosition, ...] = ()
        self._producers: set[int] = set()
        self._own_ends: dict[str, tuple[Position, ...]] = {}
        output.learn_static()
        spare_after = max(0.05, config.settings.checkpoint_interval_ms / 2000)
        self._pool = SlotPool(self._make, FIRST_SLOTS, spare_after)
        self._live = LiveCommit(self._pool, client, self._patience)
        self._txn: Transaction | None = None

    @property
    def open_transaction(self) -> str | None:
        return None if self._txn is None else str(self._txn)

    def begin(self) -> None:
        slot = self._pool.take(self._patience)
        slot.producer.reset()
        try:
            slot.producer.client.begin_transaction()
        except KafkaException as error:
            raise failure(f"beginning transaction {slot.transactional_id}", error_of(error)) from error
        self._txn = Transaction(slot)

    def write(self, batch: Batch) -> int:
        return self._write(self._output, batch)

    def join(self, sink: Sink) -> Callable[[Batch], int]:
        assert isinstance(sink, JoiningSink), "only Kafka sinks have a Kafka transaction in common"
        output = sink.output(self._output.topics)
        self._outputs.append(output)
        output.learn_static()
        return partial(self._write, output)

    def _write(self, output: TopicOutput, batch: Batch) -> int:
        txn = self._opened
        try:
            written = output.write(txn.slot.producer, batch)
        except RecordsRefused as error:
            txn.records += error.written
            raise
        txn.records += written
        return written

    def bytes_written(self) -> tuple[int, ...]:
        return tuple(output.bytes_written for output in self._outputs)

    def known_outputs(self, earlier: Sequence[KnownOutput]) -> list[KnownOutput]:
        known, attempt, producers = self._output.topics.known, self._config.attempt, tuple(sorted(self._producers))
        own = {
            topic: replace(known[topic], written=Written(attempt, producers, ends))
            for topic, ends in self._own_ends.items()
        }
        return known_outputs(known | own, earlier if any(output.chooses for output in self._outputs) else ())

    def pre_commit(self, request: PreCommit) -> Committable | None:
        txn = self._opened
        self._pool.taken(request.checkpoint_id)
        self._identity.check_once(request.checkpoint_id)
        held = _held_by_group(request)
        # One without records may have to carry positions that no transaction of ours carries yet.
        if txn.records == 0 and held == self._witnessed:
            self._own_ends = self._asked_own_ends()
            return None
        self._pool.require_room()
        self._flush(txn.slot.producer, request)
        reached(CrashPoint.IN_PRE_COMMIT_AFTER_FLUSH, checkpoint=request.checkpoint_id, subtask=self._config.subtask)
        self._own_ends = self._asked_own_ends()
        self._send_positions(txn, request, held)
        reached(CrashPoint.AFTER_WITNESS, checkpoint=request.checkpoint_id, subtask=self._config.subtask)
        prepared = self._prepared(txn, request, held, self._described(txn))
        self._producers.add(prepared.producer_id)
        self._pool.pre_committed(txn.slot, request.checkpoint_id)
        self._witnessed = held
        self._txn = None
        return prepared.to_committable()

    def commit(self, committable: Committable, proof: Complete) -> None:
        assert committable.checkpoint_id <= proof.checkpoint_id, "a completion proves earlier checkpoints only"
        began = time.monotonic()
        self._live.commit(committable)
        if time.monotonic() - began > SLOW_COMMIT_SECONDS:
            close_committed(self._client, [committable], MARKERS_BUDGET_SECONDS)

    def release(self, completed: CheckpointId) -> None:
        self._pool.release(completed)

    def abort(self) -> None:
        txn, self._txn = self._txn, None
        if txn is None:
            return
        try:
            txn.slot.producer.client.abort_transaction(ABORT_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise failure(f"aborting transaction {txn}", error_of(error)) from error

    def close(self) -> None:
        self._pool.close()
        for output in self._outputs:
            output.close()
        self._client.close()

    @property
    def _opened(self) -> Transaction:
        assert self._txn is not None, "no transaction was begun"
        return self._txn

    def _make(self, number: int) -> tuple[str, TrackedProducer]:
        name = transactional_id(self._config.prefix, SlotName(self._config.attempt, self._config.subtask, number))
        producer = TrackedProducer(
            self._config.transactional(name, self._timeout_ms), self._identity.doubt, self._backlog
        )
        topics = list(self._output.topics.ids)
        producer.await_broker(topics[0] if topics else None)
        try:
            producer.client.init_transactions(INIT_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise failure(f"initialising transactional id {name}", error_of(error)) from error
        # After it was opened, never before: a later attempt that did not find the id is found here.
        refuse_successor(self._client, self._config.prefix, self._config.attempt)
        for topic in topics:
            producer.know(topic)
        return name, producer

    def _flush(self, producer: TrackedProducer, request: PreCommit) -> None:
        if producer.flush(0):
            reached(CrashPoint.IN_FLUSH, checkpoint=request.checkpoint_id, subtask=self._config.subtask)
        producer.deliver(self._patience)

    def _asked_own_ends(self) -> dict[str, tuple[Position, ...]]:
        """Return where each topic ends that the job reads itself, now that nothing of it is on its way there."""
        topics = [output.own_topic for output in self._outputs if output.own_topic is not None]
        counts = {topic: self._output.topics.partitions[topic] for topic in topics}
        partitions = [TopicPartition(topic, number) for topic in topics for number in range(counts[topic])]
        if not partitions:
            return {}
        try:
            ends = call_with_retry(lambda: self._client.high_watermarks(partitions), DESCRIBE_BUDGET_SECONDS)
        except Unavailable as error:
            raise CheckpointDeclined(f"nobody says where {', '.join(topics)} ends: {error}") from error
        return {
            topic: tuple(ends[TopicPartition(topic, number)] for number in range(counts[topic])) for topic in topics
        }

    def _send_positions(self, txn: Transaction, request: PreCommit, held: tuple[PartitionPosition, ...]) -> None:
        if request.follower is None or not held:
            return
        offsets = [group_offset(item, request.checkpoint_id, self._config.attempt) for item in held]
        try:
            txn.slot.producer.send_positions(offsets, self._metadata_of(request.follower), self._patience)
        except KafkaException as error:
            cause = error_of(error)
            reason = failure(f"putting the positions into transaction {txn}", cause)
            if cause.retriable() and not cause.txn_requires_abort():
                raise CheckpointDeclined(str(reason)) from error
            raise reason from error

    def _metadata_of(self, group: str) -> object:
        """Return librdkafka's handle of a group without members; only a consumer can make one."""
        if group not in self._group_metadata:
            consumer = Consumer(self._config.group_handle(group))
            self._group_metadata[group] = consumer.consumer_group_metadata()
            consumer.close()
        return self._group_metadata[group]

    def _described(self, txn: Transaction) -> OpenTransaction:
        name = txn.slot.transactional_id
        try:
            found = call_with_retry(lambda: self._client.describe_transaction(name), DESCRIBE_BUDGET_SECONDS)
        except Unavailable as error:
            raise CheckpointDeclined(f"the transaction coordinator did not describe {name}: {error}") from error
        return require_open(found, name, self._timeout_ms)

    def _prepared(
        self, txn: Transaction, request: PreCommit, held: tuple[PartitionPosition, ...], found: OpenTransaction
    ) -> PreparedTransaction:
        return prepared_transaction(
            txn.slot.transactional_id,
            found,
            txn.slot.producer.topics,
            self._output.topics.ids,
            request.checkpoint_id,
            self._config.subtask,
            request.follower,
            held,
        )


def _held_by_group(request: PreCommit) -> tuple[PartitionPosition, ...]:
    """Return the positions that the transaction commits to the group, of topics that are there."""
    every = () if request.follower is None else partition_positions(request.positions)
    return tuple(position for position in every if not position.gone)
