"""Topics in memory, with the transactions that write to them: what a broker is to a job.

Invariants:

- A partition is read up to the first record of an open transaction, and no aborted record is read: `read_committed`.
- A transaction that has ended stays as it is; one is committed or aborted whole.
- Records are numbered in the order in which they were appended, over all topics, so every reader of several partitions
  can have one order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from twopc.errors import ConfigurationError
from twopc.kafka.topics.partitioner import partition_for
from twopc.protocol.ids import AttemptId
from twopc.record import Headers
from twopc.serde import Serde
from twopc.testing.rows import InputRow


class TransactionEnd(Enum):
    """The end of a transaction."""

    NONE = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True, eq=False)
class Transaction:
    """One transaction; `prefix` is of the sinks that share it."""

    name: str
    prefix: str
    attempt: AttemptId
    ending: TransactionEnd = TransactionEnd.NONE


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One record as it stands in a partition; `key` and `value` are the serdes of the sink that wrote it."""

    number: int
    row: InputRow
    transaction: Transaction | None = None
    key: Serde | None = None
    value: Serde | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record to append; `timestamp` is Unix milliseconds, `partition` None for the one that key or turn says."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    headers: Headers | None = None
    partition: int | None = None


class MemoryTopics:
    """All topics of one run. A topic is made when it is first named, with 1 partition unless `partitions` says more.

    `partitions` is the number that each topic has, or that of some topics by name.
    """

    def __init__(self, partitions: int | Mapping[str, int]) -> None:
        by_topic = partitions if isinstance(partitions, Mapping) else {}
        most = 1 if isinstance(partitions, Mapping) else partitions
        for each in (most, *by_topic.values()):
            if type(each) is not int or each < 1:
                raise ConfigurationError(f"a topic has at least 1 partition, not {each!r}")
        self._partitions = most
        self._by_topic = by_topic
        self._logs: dict[str, list[list[LogRecord]]] = {}
        self._turns: Counter[str] = Counter()
        self._appended = 0
        self._transactions: dict[str, Transaction] = {}

    def create(self, topic: str, partitions: int | None = None) -> None:
        """Make a topic, unless it is there."""
        if topic not in self._logs:
            number = self._by_topic.get(topic) or partitions or self._partitions
            self._logs[topic] = [[] for _ in range(number)]

    def exists(self, topic: str) -> bool:
        return topic in self._logs

    def partitions_of(self, topic: str) -> range:
        """The numbers of a topic's partitions; none of one that isn't there."""
        return range(len(self._logs.get(topic, ())))

    def append(
        self,
        new: NewRecord,
        transaction: Transaction | None = None,
        key: Serde | None = None,
        value: Serde | None = None,
    ) -> None:
        """Append a record, in the transaction if there is one; `key` and `value` are the serdes that wrote it."""
        self.create(new.topic)
        logs = self._logs[new.topic]
        number = self._partition(new, len(logs))
        row = InputRow(
            new.value,
            new.key,
            partition_=number,
            offset_=len(logs[number]),
            timestamp_=new.timestamp,
            headers_=new.headers,
            topic_=new.topic,
        )
        logs[number].append(LogRecord(self._appended, row, transaction, key, value))
        self._appended += 1

    def readable(self, topic: str, partition: int, start: int, stop: int | None = None) -> Iterator[LogRecord]:
        """Yield what a read_committed reader sees, from one offset up to another."""
        for record in self._logs[topic][partition][start:stop]:
            ending = TransactionEnd.COMMITTED if record.transaction is None else record.transaction.ending
            if ending is TransactionEnd.NONE:
                return
            if ending is TransactionEnd.COMMITTED:
                yield record

    def end(self, topic: str, partition: int) -> int:
        """Return the offset up to which a read_committed reader can come now."""
        log = self._logs[topic][partition]
        unended = (
            at
            for at, record in enumerate(log)
            if record.transaction and record.transaction.ending is TransactionEnd.NONE
        )
        return next(unended, len(log))

    def offset_at(self, topic: str, partition: int, timestamp: int) -> int:
        """Return the offset of the first record that is as late as this, the end if there is none."""
        later = (record.row.offset_ for record in self.readable(topic, partition, 0) if _is_at(record.row, timestamp))
        return next(later, self.end(topic, partition))

    def begin(self, name: str, prefix: str, attempt: AttemptId) -> Transaction:
        """Open a transaction."""
        transaction = self._transactions[name] = Transaction(name, prefix, attempt)
        return transaction

    def transaction(self, name: str) -> Transaction | None:
        """Return the transaction of this name, None if there was none."""
        return self._transactions.get(name)

    def lingering(self, prefix: str, before: AttemptId) -> list[Transaction]:
        """Return the open transactions of a prefix that attempts before this one left."""
        return [
            transaction
            for transaction in self._transactions.values()
            if transaction.prefix == prefix
            and transaction.attempt < before
            and transaction.ending is TransactionEnd.NONE
        ]

    def _partition(self, new: NewRecord, partitions: int) -> int:
        if new.partition is not None:
            if not 0 <= new.partition < partitions:
                raise ConfigurationError(
                    f"topic {new.topic!r} has no partition {new.partition}: it has {partitions} (partitions=...)"
                )
            return new.partition
        if new.key is not None:
            return partition_for(new.key, partitions)
        self._turns[new.topic] += 1
        return (self._turns[new.topic] - 1) % partitions


def _is_at(row: InputRow, timestamp: int) -> bool:
    return row.timestamp_ is not None and row.timestamp_ >= timestamp
