"""A position as a consumer group has it: with what tells whose it is, of which topic, and of which leader epoch."""

from __future__ import annotations

from confluent_kafka import TopicPartition

from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.positions.witness import witness_metadata
from twopc.protocol.ids import AttemptId, CheckpointId

_NO_EPOCH = -1


def group_offset(held: PartitionPosition, checkpoint_id: CheckpointId, attempt: AttemptId) -> TopicPartition:
    """Return the offset to commit; the epoch is that of what stands right before it, where that was read (KIP-320)."""
    epoch = _NO_EPOCH if held.read is None or held.read.end != held.position else held.read.epoch
    return TopicPartition(
        *held.partition, held.position, witness_metadata(checkpoint_id, held.topic_id, attempt), epoch
    )
