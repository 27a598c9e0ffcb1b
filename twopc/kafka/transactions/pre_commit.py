"""The last step of a pre-commit: the transaction coordinator's own account of what the transaction holds.

Only that account goes into the committable, so that whoever settles it later judges by what the broker said then.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from twopc.errors import ProtocolViolation, Unavailable
from twopc.kafka.clients.control_client import OpenTransaction
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.protocol.ids import CheckpointId, SubtaskIndex


def require_open(found: OpenTransaction | None, transactional_id: str, timeout_ms: int) -> OpenTransaction:
    """Return what the broker said if it is of an open transaction; raise Unavailable if it is gone."""
    if found is None or found.described.state is not BrokerState.ONGOING:
        state = "nothing" if found is None else found.described.state.value
        raise Unavailable(
            f"transaction {transactional_id} is no longer open (the broker says {state}): it took longer than its "
            f"time-out of {timeout_ms} ms, or another producer took its transactional id over"
        )
    return found


def prepared_transaction(
    transactional_id: str,
    found: OpenTransaction,
    written_to: AbstractSet[str],
    topic_ids: Mapping[str, str],
    checkpoint_id: CheckpointId,
    subtask: SubtaskIndex,
    group: str | None = None,
    positions: tuple[PartitionPosition, ...] = (),
) -> PreparedTransaction:
    """Return the committable of a flushed transaction; raise ProtocolViolation if the broker lacks what was written."""
    topics = sorted(written_to)
    missing = set(topics) - {partition.topic for partition in found.partitions}
    if missing:
        raise ProtocolViolation(
            f"transaction {transactional_id} was flushed, but the broker lists no partition of "
            f"{', '.join(sorted(missing))}"
        )
    return PreparedTransaction(
        transactional_id=transactional_id,
        checkpoint_id=checkpoint_id,
        subtask=subtask,
        producer_id=found.described.producer_id,
        producer_epoch=found.described.producer_epoch,
        start_ms=found.described.start_ms,
        timeout_ms=found.timeout_ms,
        partitions=tuple(sorted(found.partitions)),
        topic_ids={topic: topic_ids[topic] for topic in topics},
        group=group,
        positions=positions,
    )
