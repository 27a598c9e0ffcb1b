"""The expected output of one topic, as numbers: 22 bytes a record, and about 300 a key.

The records of a key are a chain through the arrays, in the order in which they were added.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from twopc.kafka.place import Place
from twopc.kafka.topic_partition import TopicPartition
from twopc.verify.history import Expected, identity
from twopc.verify.interner import Interner

END = -1


class Expectation:
    """Add records in the order of each lane, an input partition on a path; then ask for those of a key."""

    def __init__(self) -> None:
        self.identities = array("q")
        self.following = array("i")
        self.first = array("i")
        self._offsets = array("q")
        self._lane_of = array("H")
        self._last = array("i")
        self._several = bytearray()
        self._keys: dict[bytes | None, int] = {}
        self._lanes: Interner[tuple[TopicPartition, str]] = Interner()
        self._partitions: Interner[TopicPartition] = Interner()
        self._partition_of_lane: list[int] = []

    def __len__(self) -> int:
        return len(self.identities)

    def add(self, expected: Expected) -> None:
        record, (partition, offset) = len(self.identities), expected.source
        lane = self._lanes.of((partition, expected.path))
        if lane == len(self._partition_of_lane):
            self._partition_of_lane.append(self._partitions.of(partition))
        key = self._keys.get(expected.key)
        if key is None:
            self._keys[expected.key] = len(self.first)
            self.first.append(record)
            self._last.append(record)
            self._several.append(False)
        else:
            last = self._last[key]
            self.following[last] = record
            self._last[key] = record
            if self._lane_of[last] != lane:
                self._several[key] = True
        self.identities.append(identity(expected.value, expected.headers))
        self.following.append(END)
        self._offsets.append(offset)
        self._lane_of.append(lane)

    def keys(self) -> list[bytes | None]:
        """Every key, by its number."""
        return list(self._keys)

    def key_number(self, key: bytes | None) -> int | None:
        return self._keys.get(key)

    def has_several_lanes(self, key: int) -> bool:
        """Whether the key's records came of several input partitions or paths, so that no one order is right."""
        return bool(self._several[key])

    def chain(self, record: int) -> Iterator[int]:
        """This record and those after it of the same key."""
        while record != END:
            yield record
            record = self.following[record]

    def source(self, record: int) -> Place:
        return Place(self._lanes.names[self._lane_of[record]][0], self._offsets[record])

    def lane(self, record: int) -> int:
        """The number of the input partition and the path, within which there is an order."""
        return self._lane_of[record]

    def partition_number(self, record: int) -> int:
        return self._partition_of_lane[self._lane_of[record]]

    def offset(self, record: int) -> int:
        return self._offsets[record]
