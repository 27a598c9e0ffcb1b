"""Positions live in the state, and say which snapshot it is."""

from __future__ import annotations

import pytest

from twopc.errors import CheckpointCorrupted
from twopc.protocol.facts import SplitPosition
from twopc.state.backend import Family
from twopc.state.layout import position_key
from twopc.state.memory import MemoryBackend
from twopc.state.positions import read_positions, write_positions

FIRST = SplitPosition("in[0]", 0, [5, "topic-id"])
SECOND = SplitPosition("in[1]", 1, [2**40, "topic-id"])


def test_positions_come_back_as_they_were_written() -> None:
    backend = MemoryBackend()
    write_positions(backend, [SECOND, FIRST])
    assert read_positions(backend) == (FIRST, SECOND)


def test_a_partition_that_is_not_read_any_more_has_no_position() -> None:
    backend = MemoryBackend()
    write_positions(backend, [FIRST, SECOND])
    write_positions(backend, [SECOND])
    assert read_positions(backend) == (SECOND,)


@pytest.mark.parametrize("value", [b"", b"5", b"[]", b"[1]", b'["x", 5]', b"\xff"])
def test_a_position_that_cannot_be_read_is_refused_by_name(value: bytes) -> None:
    backend = MemoryBackend()
    backend.put_many(Family.POSITIONS, [(position_key(FIRST.split), value)])
    with pytest.raises(CheckpointCorrupted, match=r"in\[0\]"):
        read_positions(backend)
