"""Records that were taken from several lanes, as they go: by the batch that each was read in, and in one order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from twopc.column_rows import places_of
from twopc.operators import Order, Turn
from twopc.record import Batch
from twopc.runtime.lanes import Held, Lane

Taken = list[tuple[int, int]]
"""The index of each record in the batch that it was read in, and its number in the turn."""


class Gathered:
    """What goes in one turn; `source` is that of what was taken first."""

    def __init__(self) -> None:
        self.size = 0
        self.source: str | None = None
        self._taken: dict[str, dict[Held, Taken]] = {}
        self._mixed: set[str] = set()

    def take(self, lanes: Sequence[Lane], places: Sequence[int]) -> None:
        """Take records in this order, each the first of the lane that stands at a place of these."""
        numbers: dict[int, list[int]] = {place: [] for place in sorted(set(places))}
        for number, place in enumerate(places, self.size):
            numbers[place].append(number)
        self.size += len(places)
        for place, own in numbers.items():
            source = lanes[place].source
            self.source = self.source or source
            rest = iter(own)
            for held, indices in lanes[place].take(len(own)):
                self._taken.setdefault(source, {}).setdefault(held, []).extend(zip(indices, rest, strict=False))
        self._mixed.update(source for source, count in Counter(lanes[at].source for at in numbers).items() if count > 1)

    def turn(self) -> Turn | None:
        """Return all that was taken; None for nothing."""
        if not self.size:
            return None
        parts: list[tuple[str, Batch]] = []
        order: Order = {}
        for source, taken in self._taken.items():
            for batch, numbers in self._batches(source, taken):
                parts.append((source, batch))
                if len(self._taken) > 1:
                    order.update(zip(places_of(batch.rows), numbers, strict=True))
        return Turn(tuple(parts), order or None)

    def _batches(self, source: str, every: dict[Held, Taken]) -> list[tuple[Batch, list[int]]]:
        """Return the records of a source as they were read; where lanes of one number are mixed, in order."""
        found = []
        for held, taken in sorted(every.items(), key=lambda each: each[0].number):
            taken.sort()
            batch = held.batch if held.is_error else held.batch.take([index for index, _ in taken])
            found.append((batch, [number for _, number in taken]))
        if source not in self._mixed:
            return found
        batch, numbers = Batch.joined([batch for batch, _ in found]), [each for _, some in found for each in some]
        return [(batch.by_number(numbers), sorted(numbers))]
