"""A numbered input for tests: what every output record must be is known from its key and its place among them.

Records go to the keys in turn, and each key has one input partition. A *lane* is what the order is kept in: one key,
named by its index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from twopc.testing.topics import Write


@dataclass(frozen=True, slots=True)
class NumberedInput:
    """`records` numbers, dealt out to `keys` in turn; the key with index i is in partition i modulo `partitions`."""

    keys: tuple[bytes, ...]
    partitions: int
    records: int
    _lanes: dict[bytes, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lanes", {key: lane for lane, key in enumerate(self.keys)})

    @property
    def lanes(self) -> Sequence[int]:
        return range(len(self.keys))

    def writes(self, first: int = 0, end: int | None = None) -> Iterator[Write]:
        """The records with these numbers, as they are produced: the value is the number."""
        for number in range(first, self.records if end is None else min(end, self.records)):
            lane = number % len(self.keys)
            yield Write(b"%d" % number, key=self.keys[lane], partition=self.partition_of(lane))

    def lane_of(self, key: bytes | None) -> int | None:
        """The lane of a key; None for a key that the input doesn't have."""
        return None if key is None else self._lanes.get(key)

    def partition_of(self, lane: int) -> int:
        return lane % self.partitions

    def lanes_of(self, partition: int) -> range:
        return range(partition, len(self.keys), self.partitions)

    def size(self, lane: int) -> int:
        """How many records the lane has."""
        return (self.records - lane + len(self.keys) - 1) // len(self.keys)

    def end(self, partition: int) -> int:
        """How many records the input partition has."""
        return sum(self.size(lane) for lane in self.lanes_of(partition))

    def number(self, lane: int, place: int) -> int:
        """The number of the record at this place of the lane, from 0."""
        return lane + place * len(self.keys)

    def position(self, lane: int, place: int) -> int:
        """The offset of that record in its input partition."""
        return place * len(self.lanes_of(self.partition_of(lane))) + lane // self.partitions

    def before(self, lane: int, position: int) -> int:
        """How many records of the lane are before this offset of its input partition."""
        rounds, rest = divmod(position, len(self.lanes_of(self.partition_of(lane))))
        return min(rounds + (lane // self.partitions < rest), self.size(lane))
