"""A Kafka sink whose topics are in memory: production's encoding, and transactions of its own.

A transaction is all output of one subtask between two checkpoints, of every sink with the same prefix. It is committed
by its writer when the checkpoint has completed, or by the committer after a crash: never without one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any

from twopc.context import JobContext, SubtaskContext
from twopc.errors import TransactionLost
from twopc.kafka.output.record_taker import RecordTaker
from twopc.kafka.output.topic_output import TopicOutput
from twopc.kafka.sink import DeliveryGuarantee, KafkaSink
from twopc.kafka.topics.output_topics import OutputTopics
from twopc.kafka.topics.partitioner import BY_PRODUCER
from twopc.protocol.facts import Committable
from twopc.protocol.messages import Complete
from twopc.record import Batch, RecordsRefused
from twopc.sink import Committer, Outcome, PreCommit, Settled, SharedTransaction, Sink, SinkWriter
from twopc.source import Split
from twopc.testing.memory.source import topic_id
from twopc.testing.memory.topics import MemoryTopics, NewRecord, Transaction, TransactionEnd


class MemorySink(KafkaSink):
    """The same sink, but for where its topics are."""

    def __init__(self, sink: KafkaSink, topics: MemoryTopics) -> None:
        vars(self).update(vars(sink))
        self._memory = topics

    def with_access(self, properties: Mapping[str, Any]) -> MemorySink:
        return self

    def watched(self, context: JobContext) -> AbstractContextManager[object]:
        return nullcontext()

    def shared_transaction(self, context: JobContext) -> SharedTransaction | None:
        return SharedTransaction(f"kafka/memory/{self.prefix(context)}") if self._is_transactional else None

    def check_splits(self, context: JobContext, splits: Sequence[Split]) -> None:
        """All topics in memory have the same number of partitions."""
        self.check_serdes()

    def refuse_inputs(self, context: JobContext, splits: Sequence[Split]) -> None:
        """The job was refused as it was built: a topic in memory has one name."""

    def open_writer(self, context: SubtaskContext) -> SinkWriter:
        return MemoryWriter(self, context, self._memory) if self._is_transactional else AtOnceWriter(self, self._memory)

    def open_committer(self, context: JobContext) -> Committer:
        return MemoryCommitter(self._memory, self.prefix(context), context)

    def prefix(self, context: JobContext) -> str:
        """The prefix of this sink's transactional names."""
        return self.transactional_id_prefix or context.job

    @property
    def _is_transactional(self) -> bool:
        return self.delivery_guarantee is DeliveryGuarantee.EXACTLY_ONCE


class MemoryWriter(SinkWriter):
    """The exactly-once writer of one subtask, for the sinks that share its transactions."""

    def __init__(self, sink: MemorySink, context: SubtaskContext, topics: MemoryTopics) -> None:
        self._context = context
        self._prefix = sink.prefix(context)
        self._topics = topics
        self._numbers = count()
        self._txn: Transaction | None = None
        self._records = 0
        self._encoded: list[EncodedRecords] = []
        self._write = self.join(sink)

    @property
    def open_transaction(self) -> str | None:
        return None if self._txn is None else self._txn.name

    def begin(self) -> None:
        name = f"{self._prefix}-{self._context.attempt}-{self._context.subtask}-{next(self._numbers)}"
        self._txn, self._records = self._topics.begin(name, self._prefix, self._context.attempt), 0

    def write(self, batch: Batch) -> int:
        return self._write(batch)

    def join(self, sink: Sink) -> Callable[[Batch], int]:
        assert isinstance(sink, MemorySink), "only Kafka sinks have a Kafka transaction in common"
        encoded = EncodedRecords(sink, self._topics)
        self._encoded.append(encoded)

        def write(batch: Batch) -> int:
            try:
                written = encoded.write(batch, self._txn)
            except RecordsRefused as error:
                self._records += error.written
                raise
            self._records += written
            return written

        return write

    def pre_commit(self, request: PreCommit) -> Committable | None:
        txn = self._txn
        if txn is None or self._records == 0:
            return None
        self._txn = None
        return Committable(txn.name, request.checkpoint_id, self._context.subtask, {})

    def commit(self, committable: Committable, proof: Complete) -> None:
        assert committable.checkpoint_id <= proof.checkpoint_id, "a completion proves earlier checkpoints only"
        settled = settle(self._topics, committable)
        if settled.outcome is Outcome.LOST:
            raise TransactionLost(f"checkpoint {proof.checkpoint_id} has completed, but {settled.evidence}")

    def abort(self) -> None:
        txn, self._txn = self._txn, None
        if txn is not None:
            txn.ending = TransactionEnd.ABORTED

    def close(self) -> None:
        for encoded in self._encoded:
            encoded.close()


class AtOnceWriter(SinkWriter):
    """Of a sink without transactions: what it writes is there at once, and again after a crash."""

    def __init__(self, sink: MemorySink, topics: MemoryTopics) -> None:
        self._encoded = EncodedRecords(sink, topics)

    @property
    def open_transaction(self) -> str | None:
        return None

    def begin(self) -> None:
        """There are no transactions."""

    def write(self, batch: Batch) -> int:
        return self._encoded.write(batch, None)

    def pre_commit(self, request: PreCommit) -> Committable | None:
        return None

    def commit(self, committable: Committable, proof: Complete) -> None:
        """There is nothing to commit."""

    def abort(self) -> None:
        """There is nothing to abort."""

    def close(self) -> None:
        self._encoded.close()


class EncodedRecords(RecordTaker):
    """The records of one sink, as production's output encodes them; it takes this for a producer."""

    def __init__(self, sink: MemorySink, topics: MemoryTopics) -> None:
        super().__init__()
        self._sink = sink
        self._memory = topics
        self._output: TopicOutput = sink.output(CreatedTopics(topics))
        self._output.learn_static()
        self._txn: Transaction | None = None

    def write(self, batch: Batch, txn: Transaction | None) -> int:
        """Append the batch, in this transaction if there is one; return how many records that were."""
        self._txn = txn
        return self._output.write(self, batch)

    def close(self) -> None:
        """Let go of the serdes."""
        self._output.close()

    def take(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[tuple[str, bytes | None], ...],
        partition: int,
        timestamp: int,
    ) -> None:
        new = NewRecord(
            topic=topic,
            key=key,
            value=value,
            timestamp=timestamp if timestamp >= 0 else None,
            headers=list(headers) or None,
            partition=None if partition == BY_PRODUCER else partition,
        )
        self._memory.append(new, self._txn, self._sink.key, self._sink.value)


class CreatedTopics(OutputTopics):
    """Makes each topic that is written to."""

    def __init__(self, topics: MemoryTopics) -> None:
        super().__init__()
        self._memory = topics

    def learn(self, topic: str) -> None:
        self._memory.create(topic)
        self.ids[topic] = topic_id(topic)
        self.partitions[topic] = len(self._memory.partitions_of(topic))


class MemoryCommitter(Committer):
    """Settles and aborts what attempts before have left of one prefix."""

    def __init__(self, topics: MemoryTopics, prefix: str, context: JobContext) -> None:
        self._topics = topics
        self._prefix = prefix
        self._context = context

    def join(self, sink: Sink) -> None:
        """The prefix is the same."""

    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        return [settle(self._topics, committable) for committable in committables]

    def abort_lingering(self) -> list[str]:
        lingering = self._topics.lingering(self._prefix, self._context.attempt)
        for txn in lingering:
            txn.ending = TransactionEnd.ABORTED
        return [txn.name for txn in lingering]


def settle(topics: MemoryTopics, committable: Committable) -> Settled:
    """Commit the transaction if it is open; say what was found."""
    txn = topics.transaction(committable.name)
    if txn is None or txn.ending is TransactionEnd.ABORTED:
        return Settled(committable, Outcome.LOST, f"transaction {committable.name} was aborted", certain=True)
    if txn.ending is TransactionEnd.COMMITTED:
        return Settled(committable, Outcome.ALREADY_COMMITTED, "it is committed")
    txn.ending = TransactionEnd.COMMITTED
    return Settled(committable, Outcome.COMMITTED, "it was open")
