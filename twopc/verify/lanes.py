"""The order of an input partition in an output partition, whatever the keys: what is made of one goes out in its order.

A job may bring a record to one topic over several paths: the order is that of one path, and between two there is none.

Only records that are surely attributed take part: which input record each was made of must be known. Records of a key
that are alike are attributed in their order, if as many are there as are expected, made in one lane and in
one output partition: if any attribution puts a lane in order, then this one does. 12 bytes a record.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from twopc.kafka.place import Place
from twopc.kafka.topic_partition import TopicPartition
from twopc.verify.alignment import align
from twopc.verify.expectation import Expectation

IsCertain = Callable[[TopicPartition, Place], bool]
"""Whether what stands at this place, and looks as if made of that input partition, is of the history that is judged."""


def everywhere(source: TopicPartition, place: Place) -> bool:
    """Say so of every place."""
    return True


@dataclass(frozen=True, slots=True)
class Displaced:
    """An expected record that stands `behind` another of its lane that is made later, or else before an earlier one."""

    record: int
    place: Place
    other: int
    behind: bool


@dataclass(frozen=True, slots=True)
class _Lane:
    partition: TopicPartition
    records: array[int] = field(default_factory=lambda: array("i"))
    offsets: array[int] = field(default_factory=lambda: array("q"))


class Lanes:
    """A lane is one path of one input partition in one output partition; `put` records where they stand.

    `surely` tells records of the history that is judged from others that stand in the topic and may look the same.
    `unordered_keys` is how many keys have records that could not be attributed.
    """

    def __init__(self, expectation: Expectation, surely: IsCertain) -> None:
        self._expectation = expectation
        self._surely = surely
        self.unordered_keys = 0
        self._lanes: dict[tuple[int, int], _Lane] = {}
        self._doubtful: set[int] = set()

    def put(self, record: int, place: Place) -> None:
        """Say that an expected record stands there."""
        number = self._expectation.lane(record), place.partition.partition
        lane = self._lanes.get(number)
        if lane is None:
            lane = self._lanes[number] = _Lane(place.partition)
        lane.records.append(record)
        lane.offsets.append(place.offset)

    def is_sure(self, record: int, place: Place) -> bool:
        return self._surely(self._expectation.source(record).partition, place)

    def doubt_alike(self, before: Sequence[int], due: Sequence[int], *, scattered: bool) -> None:
        """Doubt those of a key's records that came in order, and may be others that look the same.

        They may be of those that are still `due`; `scattered` over several output partitions, of one another.
        """
        identities = self._expectation.identities
        alike = {identities[record] for record in due}
        if scattered:
            alike |= {each for each, count in Counter(identities[record] for record in before).items() if count > 1}
        if doubtful := [record for record in before if identities[record] in alike]:
            self.unordered_keys += 1
            self._doubtful.update(doubtful)

    def attribute(
        self,
        before: Sequence[int],
        due: Sequence[int],
        standing: Sequence[tuple[int, Place]],
        named: Collection[int],
        *,
        scattered: bool,
    ) -> None:
        """Put the records of a key that stand somewhere, by identity and place, those apart that were `named` already.

        `before` were put when they came; `due` is what else was expected.
        """
        made, places = defaultdict[int, list[int]](list), defaultdict[int, list[tuple[int, Place]]](list)
        for record in (*before, *due):
            made[self._expectation.identities[record]].append(record)
        for index, (element, place) in enumerate(standing):
            places[element].append((index, place))
        came = Counter(self._expectation.identities[record] for record in before)
        unsure = False
        for element, records in made.items():
            left = records[came[element] :]
            if self._is_attributed(records, left, places[element], scattered=scattered):
                for record, (index, place) in zip(left, places[element], strict=True):
                    if index not in named:
                        self.put(record, place)
            elif places[element] or came[element]:
                unsure = True
                self._doubtful.update(records)
        self.unordered_keys += unsure

    def _is_attributed(
        self, records: Sequence[int], left: Sequence[int], places: Sequence[tuple[int, Place]], *, scattered: bool
    ) -> bool:
        if len(left) != len(places) or (scattered and len(records) > 1):
            return False
        one_lane = len({self._expectation.lane(record) for record in records}) == 1
        return one_lane and all(self.is_sure(records[0], place) for _, place in places)

    def displaced(self) -> Iterator[Displaced]:
        """Yield the fewest records that have to be elsewhere for all others to be in order."""
        for lane in self._lanes.values():
            yield from self._displaced(lane)

    def _displaced(self, lane: _Lane) -> Iterator[Displaced]:
        if self._is_in_order(lane):
            return
        standing = sorted(
            (offset, record)
            for offset, record in zip(lane.offsets, lane.records, strict=True)
            if record not in self._doubtful
        )
        records = [record for _, record in standing]
        in_place = [index for _, index in align(sorted(records), records)]
        for index, (before, after) in _gaps(in_place, len(records)):
            behind = before is not None and records[before] > records[index]
            other = before if behind else after
            if other is not None:
                place = Place(lane.partition, standing[index][0])
                yield Displaced(records[index], place, records[other], behind)

    def _is_in_order(self, lane: _Lane) -> bool:
        last_offset = last_record = -1
        for offset, record in zip(lane.offsets, lane.records, strict=True):
            if record in self._doubtful:
                continue
            if offset <= last_offset or record <= last_record:
                return False
            last_offset, last_record = offset, record
        return True


def _gaps(kept: Sequence[int], count: int) -> Iterator[tuple[int, tuple[int | None, int | None]]]:
    """Yield every index that isn't kept, with the kept ones around it."""
    edges: list[int | None] = [None, *kept, None]
    for before, after in pairwise(edges):
        first, end = -1 if before is None else before, count if after is None else after
        for index in range(first + 1, end):
            yield index, (before, after)
