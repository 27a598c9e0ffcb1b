"""The payload of a Kafka committable: everything that another process needs to settle the transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twopc.errors import CheckpointCorrupted
from twopc.kafka.clients.described_transaction import END_TXN_VERSION
from twopc.kafka.positions.partition_position import PartitionPosition, partition_positions
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.transactions.transaction_verdict import Recorded
from twopc.protocol.codec import from_json, to_json
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
        payload = {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "start_ms": self.start_ms,
            "timeout_ms": self.timeout_ms,
            "partitions": [list(partition) for partition in self.partitions],
            "topic_ids": dict(self.topic_ids),
            "group": self.group,
            "positions": [to_json(position.to_split_position()) for position in self.positions],
            "end_txn_version": END_TXN_VERSION,
        }
        return Committable(self.name, self.checkpoint_id, self.subtask, payload)

    @classmethod
    def from_committable(cls, committable: Committable) -> PreparedTransaction:
        """Raise CheckpointCorrupted if the payload is not one of this sink's."""
        payload = committable.payload
        try:
            if payload["end_txn_version"] != END_TXN_VERSION:
                raise ValueError(f"EndTxn version {payload['end_txn_version']}")
            return cls(
                transactional_id=str(payload["transactional_id"]),
                checkpoint_id=committable.checkpoint_id,
                subtask=committable.subtask,
                producer_id=int(payload["producer_id"]),
                producer_epoch=int(payload["producer_epoch"]),
                start_ms=int(payload["start_ms"]),
                timeout_ms=int(payload["timeout_ms"]),
                partitions=tuple(TopicPartition(str(topic), int(number)) for topic, number in payload["partitions"]),
                topic_ids={str(topic): str(topic_id) for topic, topic_id in payload["topic_ids"].items()},
                group=None if payload["group"] is None else str(payload["group"]),
                positions=partition_positions(from_json(SplitPosition, each) for each in payload["positions"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointCorrupted(
                f"committable {committable.name} was not made by this version of the Kafka sink: {error!r}"
            ) from error
