"""Places where ways of one source meet again: records leave them in the order in which their source handed them over.

A batch goes one way after another, so what has taken the first is here before what has taken the next. What one record
has become on several ways has the order of the ways.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

from twopc.column_rows import Place, places_of
from twopc.record import Batch, Row

Order = dict[Place, int]
"""The number of each record in the batch that goes through the graph."""


def order_of(rows: Sequence[Row]) -> Order:
    """Return the order of a batch; what has the place of none of its rows stands before all that has."""
    return {place: index for index, place in enumerate(places_of(rows))}


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

    def leave(self, order: Order) -> Batch:
        """Return all that has arrived as one batch, in order."""
        batch, indices, _ = self._sorted(order)
        return batch.take(indices)

    def leave_apart(self, order: Order) -> Iterator[tuple[int, Batch]]:
        """Return all that has arrived, in order, in parts that each came on one way, with the number of that."""
        batch, indices, ways = self._sorted(order)
        for way, part in groupby(indices, ways.__getitem__):
            yield way, batch.take(list(part))

    def _sorted(self, order: Order) -> tuple[Batch, list[int], list[int]]:
        arrived, self._arrived = sorted(self._arrived.items()), defaultdict(list)
        batch = Batch.joined([part for _, parts in arrived for part in parts])
        ways = [way for way, parts in arrived for part in parts for _ in range(len(part))]
        numbers = [order.get(place, -1) for place in places_of(batch.rows)]
        # A stable sort: what has one number stays in the order of the ways.
        return batch, sorted(range(len(batch)), key=numbers.__getitem__), ways
