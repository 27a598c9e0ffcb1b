"""Positions in a backend: written before each snapshot, and compared with the snapshot's own when it is restored."""

from __future__ import annotations

import json
from collections.abc import Sequence

from twopc.errors import CheckpointCorrupted
from twopc.protocol.facts import SplitPosition
from twopc.state.backend import Family, StateBackend
from twopc.state.layout import parse_position_key, position_key


def write_positions(backend: StateBackend, positions: Sequence[SplitPosition]) -> None:
    """Make these the stored positions; those of splits that are not among them are deleted."""
    new: dict[bytes, bytes | None] = {key: None for key, _ in backend.scan(Family.POSITIONS)}
    for position in positions:
        new[position_key(position.split)] = json.dumps([position.partition, position.position]).encode()
    backend.put_many(Family.POSITIONS, list(new.items()))


def read_positions(backend: StateBackend) -> tuple[SplitPosition, ...]:
    """Return the stored positions, in the order of their keys."""
    return tuple(_parse(key, value) for key, value in backend.scan(Family.POSITIONS))


def _parse(key: bytes, value: bytes) -> SplitPosition:
    split = parse_position_key(key)
    try:
        partition, position = json.loads(value)
        return SplitPosition(split, int(partition), position)
    except (ValueError, TypeError) as error:
        raise CheckpointCorrupted(f"the stored position of {split} can't be read: {value[:64]!r}") from error
