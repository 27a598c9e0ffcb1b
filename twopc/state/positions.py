"""Positions in a backend: written before each snapshot, and compared with the snapshot's own when it is restored."""

from __future__ import annotations

import json
from collections.abc import Sequence

from twopc.errors import CheckpointCorrupted
from twopc.protocol.facts import PartitionPosition
from twopc.protocol.ids import Position
from twopc.state.backend import Family, StateBackend
from twopc.state.layout import parse_position_key, partition_prefix


def write_positions(backend: StateBackend, positions: Sequence[PartitionPosition]) -> None:
    """Make these the stored positions; those of partitions that are not among them are deleted."""
    new: dict[bytes, bytes | None] = {key: None for key, _ in backend.scan(Family.POSITIONS)}
    for position in positions:
        new[partition_prefix(position.partition)] = json.dumps([position.topic_id, position.position]).encode()
    backend.put_many(Family.POSITIONS, list(new.items()))


def read_positions(backend: StateBackend) -> tuple[PartitionPosition, ...]:
    """Return the stored positions, in the order of their keys."""
    return tuple(_parse(key, value) for key, value in backend.scan(Family.POSITIONS))


def _parse(key: bytes, value: bytes) -> PartitionPosition:
    partition = parse_position_key(key)
    try:
        topic_id, position = json.loads(value)
        return PartitionPosition(partition, str(topic_id), Position(int(position)))
    except (ValueError, TypeError) as error:
        raise CheckpointCorrupted(f"the stored position of {partition} can't be read: {value[:64]!r}") from error
