"""A broker's transactions whole: coordinator, partitions, and a group's offsets, put together. Pure: no clock, no dice.

Requests are answered as Kafka 4.3.1 answers them; an outcome that was decided is carried out when `finish` is called.
Every method takes the time by the broker's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.simulation.partition_log import PartitionLog
from tests.simulation.transaction_coordinator import Producer, TransactionalId, TransactionCoordinator
from tests.simulation.transaction_tables import LAST_PRODUCER_EPOCH, Code
from twopc.config import NO_TIMEOUT_MS
from twopc.kafka.topic_partition import TopicPartition

#: The one partition that holds what groups have committed.
OFFSETS = -1
#: From these versions on, a request adds its partition to the transaction; before, it must have been added.
ADDING_PRODUCE = 12
ADDING_OFFSET_COMMIT = 5
#: From these on, they can be answered that the transaction must be aborted.
ABORTABLE_PRODUCE = 11
ABORTABLE_OFFSET_COMMIT = 4

GroupOffsets = dict[TopicPartition, tuple[int, str]]


class BrokerModel:
    """One topic, one group, and any number of transactional ids."""

    def __init__(
        self,
        partitions: int,
        *,
        bumps: bool,
        max_timeout_ms: int = NO_TIMEOUT_MS,
        last_producer_epoch: int = LAST_PRODUCER_EPOCH,
        on_prepare: Callable[[TransactionalId], None] = lambda held: None,
    ) -> None:
        self.coordinator = TransactionCoordinator(
            bumps=bumps,
            max_timeout_ms=max_timeout_ms,
            last_producer_epoch=last_producer_epoch,
            on_prepare=on_prepare,
        )
        self.logs = [PartitionLog() for _ in range(partitions)]
        self.offsets: GroupOffsets = {}
        self.pending_offsets: dict[int, GroupOffsets] = {}
        self._offsets_log = PartitionLog()

    def produce(
        self,
        name: str,
        producer: Producer,
        partition: int,
        value: str,
        *,
        version: int,
        now_ms: int,
        sequence: int | None = None,
    ) -> Code:
        log = self.logs[partition]
        if not log.is_open(producer):
            if log.is_stale(producer):
                return Code.INVALID_PRODUCER_EPOCH
            adds = version >= ADDING_PRODUCE
            if sequence is not None:
                log.await_first(producer, sequence, adds=adds)
            code = self._admit(name, producer, partition, now_ms, adds=adds)
            if code is not Code.NONE:
                return _as_partition_tells(code, says_abortable=version >= ABORTABLE_PRODUCE)
        return log.append(producer, value, sequence)

    def add_offsets(self, name: str, producer: Producer, now_ms: int) -> Code:
        """AddOffsetsToTxn."""
        return self.coordinator.add_partition(name, producer, OFFSETS, now_ms)

    def commit_offsets(
        self,
        name: str,
        producer: Producer,
        offsets: Mapping[TopicPartition, tuple[int, str]],
        *,
        version: int,
        now_ms: int,
    ) -> Code:
        """TxnOffsetCommit."""
        if self._offsets_log.is_stale(producer):
            return Code.INVALID_PRODUCER_EPOCH
        if not self._offsets_log.is_open(producer):
            code = self._admit(name, producer, OFFSETS, now_ms, adds=version >= ADDING_OFFSET_COMMIT)
            if code is not Code.NONE:
                return _as_partition_tells(code, says_abortable=version >= ABORTABLE_OFFSET_COMMIT)
        code = self._offsets_log.append(producer, "")
        if code is Code.NONE:
            self.pending_offsets.setdefault(producer[0], {}).update(offsets)
        return code

    def fetch_offset(self, partition: TopicPartition, *, stable: bool) -> tuple[Code, tuple[int, str] | None]:
        """OffsetFetch; `stable` is require_stable."""
        if stable and any(partition in pending for pending in self.pending_offsets.values()):
            return Code.UNSTABLE_OFFSET_COMMIT, None
        return Code.NONE, self.offsets.get(partition)

    def finish(self, name: str, now_ms: int) -> None:
        """Write the markers of a prepared transaction, and complete it."""
        held = self.coordinator.ids[name]
        producer_id = held.producer_id
        ended = self.coordinator.complete(name, now_ms)
        for partition in ended.partitions:
            log = self._offsets_log if partition == OFFSETS else self.logs[partition]
            log.mark(ended.producer, commit=ended.commit)
        pending = self.pending_offsets.pop(producer_id, None)
        if pending and ended.commit:
            self.offsets.update(pending)

    def recreate_topic(self) -> None:
        """Delete the topic and make it again: what it held is gone."""
        self.logs = [PartitionLog() for _ in self.logs]

    def _admit(self, name: str, producer: Producer, partition: int, now_ms: int, *, adds: bool) -> Code:
        if adds:
            return self.coordinator.add_partition(name, producer, partition, now_ms)
        return self.coordinator.verify_partition(name, producer, partition)


def _as_partition_tells(code: Code, *, says_abortable: bool) -> Code:
    """The leader of a partition passes the transaction coordinator's word on in older words."""
    if code is Code.PRODUCER_FENCED:
        return Code.INVALID_PRODUCER_EPOCH
    if code is Code.TRANSACTION_ABORTABLE and not says_abortable:
        return Code.INVALID_TXN_STATE
    return code
