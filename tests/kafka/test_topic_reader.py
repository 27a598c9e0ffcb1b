"""What is read up to an end is read to the end, or it says where the reader got stuck."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from twopc.errors import Unavailable
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.input import topic_reader
from twopc.kafka.positions.partition_position import PartitionPosition, PartitionSplit
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import SplitPosition
from twopc.record import Batch, Row

PLACE, OTHER = TopicPartition("out", 0), TopicPartition("out", 1)
ENDS = {PLACE: Position(6), OTHER: Position(0)}


@dataclass
class Reader:
    """Hands over two offsets at a time, `most` times, and then nothing any more."""

    splits: Sequence[PartitionSplit]
    most: int
    at: dict[TopicPartition, int] = field(init=False)

    def __post_init__(self) -> None:
        self.at = {each.partition: each.start for each in self.splits}

    def finished(self) -> bool:
        return all(self.at[each.partition] >= ENDS[each.partition] for each in self.splits)

    def poll(self, timeout: float, most: int) -> Batch | None:
        if not self.most:
            return None
        self.most -= 1
        first = self.at[PLACE]
        self.at[PLACE] = first + 2
        return cast(Batch, SimpleNamespace(rows=[first, first + 1]))

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        return tuple(PartitionPosition(each, "", Position(at)).to_split_position() for each, at in self.at.items())

    def close(self) -> None:
        pass


def read_rows(monkeypatch: pytest.MonkeyPatch, most: int) -> list[Any]:
    """What is read by a reader that hands over so often and then gets stuck."""
    monkeypatch.setattr("twopc.kafka.input.topic_reader.KafkaReader", lambda _, __, ___, splits: Reader(splits, most))
    ranges = {place: (Position(0), end) for place, end in ENDS.items()}
    return [row for batch in topic_reader.read(Cluster("there:1"), ranges, stall_seconds=0.01) for row in batch.rows]


def test_what_a_reader_hands_over_is_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_rows(monkeypatch, 3) == [0, 1, 2, 3, 4, 5]


def test_where_the_reader_gets_stuck_the_brokers_give_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unavailable, match="nothing more came"):
        read_rows(monkeypatch, 1)
