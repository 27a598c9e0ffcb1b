"""The payload of a Kafka committable: everything that another process needs to settle the transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twopc.errors import CheckpointCorrupted
from twopc.kafka.clients.described_transaction import END_TXN_VERSION
from twopc.kafka.positions.partition_position import PartitionPosition, partition_positions, split_positions
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.transactions.transaction_verdict import Recorded
from twopc.protocol.codec import to_json
from twopc.protocol.envelope import decode_body
from twopc.protocol.facts import Committable, SplitPosition
from twopc.protocol.ids import CheckpointId, SubtaskIndex


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """One pre-committed Kafka transaction. `group` and `positions` are its witness; times are milliseconds."""

    transactional_id: str
    checkpoint_id: CheckpointId
    subtask: SubtaskIndex
    producer_id: int
    producer_epoch: int
    start_ms: int
    timeout_ms: int
    partitions: tuple[TopicPartition, ...]
    topic_ids: Mapping[str, str]
    group: str | None
    positions: tuple[PartitionPosition, ...]

    @property
    def name(self) -> str:
        return f"{self.transactional_id}@{self.checkpoint_id}"

    @property
    def recorded(self) -> Recorded:
        return Recorded(self.producer_id, self.producer_epoch, self.start_ms, self.topic_ids)

    def to_committable(self) -> Committable:
        payload = _Payload(
            self.transactional_id,
            self.producer_id,
            self.producer_epoch,
            self.start_ms,
            self.timeout_ms,
            self.partitions,
            self.topic_ids,
            self.group,
            split_positions(self.positions),
            END_TXN_VERSION,
        )
        return Committable(self.name, self.checkpoint_id, self.subtask, to_json(payload))

    @classmethod
    def from_committable(cls, committable: Committable) -> PreparedTransaction:
        """Raise CheckpointCorrupted if the payload is not one of this sink's, NewerFormat if of a newer version's."""
        name = f"committable {committable.name}"
        payload = decode_body(_Payload, committable.payload, "Kafka transaction", name)
        if (version := payload.end_txn_version) != END_TXN_VERSION:
            raise CheckpointCorrupted(f"{name} is for EndTxn version {version}, not {END_TXN_VERSION}")
        return cls(
            payload.transactional_id,
            committable.checkpoint_id,
            committable.subtask,
            payload.producer_id,
            payload.producer_epoch,
            payload.start_ms,
            payload.timeout_ms,
            payload.partitions,
            payload.topic_ids,
            payload.group,
            partition_positions(payload.positions),
        )


@dataclass(frozen=True, slots=True)
class _Payload:
    """The same as it is stored."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    start_ms: int
    timeout_ms: int
    partitions: tuple[TopicPartition, ...]
    topic_ids: Mapping[str, str]
    group: str | None
    positions: tuple[SplitPosition, ...]
    end_txn_version: int
