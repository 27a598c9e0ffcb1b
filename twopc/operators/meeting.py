"""Places where ways meet: records leave them in the order in which they were handed over.

A batch goes one way after another, so what has taken the first is here before what has taken the next. What one record
has become on several ways has the order of the ways.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from twopc.column_rows import Place, places_of
from twopc.record import Batch, Row
from twopc.state.key_form import key_bytes

Order = dict[Place, int]
"""The number of each record in the batch that goes through the graph."""


def order_of(rows: Sequence[Row]) -> Order:
    """Return the order of a batch; what has the place of none of its rows stands before all that has."""
    return {place: index for index, place in enumerate(places_of(rows))}


def in_order(batch: Batch, order: Order) -> Batch:
    """Return the records of a batch in this order."""
    return batch.by_number([order.get(place, -1) for place in places_of(batch.rows)])


class Meeting:
    """One such place. `arrive` for each part of a batch, then `leave` once."""

    def __init__(self) -> None:
        self._arrived: defaultdict[int, list[Batch]] = defaultdict(list)

    @property
    def is_empty(self) -> bool:
        return not self._arrived

    def arrive(self, way: int, batch: Batch) -> None:
        """Take what comes on the way of this number; what comes on one is in order already."""
        self._arrived[way].append(batch)

    def leave(self, order: Order, below: float = math.inf) -> Batch:
        """Return what has arrived of the records with lesser numbers than this, as one batch, in order."""
        parts = [part for _, part in sorted(self._leaving(order, below).items())]
        batch = Batch.joined(parts)
        return in_order(batch, order) if len(batch) else batch

    def leave_with_ways(self, order: Order, below: float = math.inf) -> tuple[Batch, list[int]]:
        """Return the same, and the number of the way on which each record came."""
        parts = sorted(self._leaving(order, below).items())
        batch = Batch.joined([part for _, part in parts])
        numbers = [order.get(place, -1) for place in places_of(batch.rows)]
        ways = (way for way, part in parts for _ in range(len(part)))
        return batch.by_number(numbers), [way for _, way in sorted(zip(numbers, ways, strict=True), key=itemgetter(0))]

    def leave_apart(
        self, order: Order, below: float = math.inf, *, keys_apart: bool = False
    ) -> Iterator[tuple[int, Batch]]:
        """Yield the same in parts that each came on one way, with the number of that.

        With `keys_apart` only what is of one key is in order, and parts are as large as that allows.
        """
        leaving = dict(sorted(self._leaving(order, below).items()))
        every = sorted(
            (order.get(place, -1), way, index)
            for way, batch in leaving.items()
            for index, place in enumerate(places_of(batch.rows))
        )
        for way, part in _by_key(every, leaving) if keys_apart else groupby(every, itemgetter(1)):
            yield way, leaving[way].take([index for _, _, index in part])

    def _leaving(self, order: Order, below: float) -> dict[int, Batch]:
        """Take out what goes on, by way; the rest waits on."""
        arrived, self._arrived = self._arrived, defaultdict(list)
        leaving: dict[int, Batch] = {}
        for way, parts in arrived.items():
            batch = Batch.joined(parts)
            if below < math.inf:
                places = places_of(batch.rows)
                late = [index for index, place in enumerate(places) if order.get(place, -1) >= below]
                if late:
                    self._arrived[way].append(batch.take(late))
                    batch = batch.take(sorted(set(range(len(places))).difference(late)))
            if len(batch):
                leaving[way] = batch
        return leaving


Arrived = tuple[int, int, int]
"""One record: its number in the order, its way, and its index in what came on that."""


def _by_key(every: Sequence[Arrived], arrived: Mapping[int, Batch]) -> Iterator[tuple[int, list[Arrived]]]:
    """Yield the records in rounds over the ways: each in the first round that comes behind what its key has before."""
    ways = {way: number for number, way in enumerate(arrived)}
    keys = {way: list(map(_form, batch.keys)) for way, batch in arrived.items()}
    turns: dict[bytes, int] = {}
    parts: dict[int, list[Arrived]] = {}
    for each in every:
        _, way, index = each
        before = turns.get(key := keys[way][index], 0)
        turns[key] = turn = before + (ways[way] - before) % len(ways)
        parts.setdefault(turn, []).append(each)
    for turn in sorted(parts):
        yield parts[turn][0][1], parts[turn]


def _form(key: Any) -> bytes:
    """Return a key as states have it, the same for all that can be none: the step that they come to refuses them."""
    try:
        return key_bytes(key)
    except (TypeError, ValueError):
        return b""
