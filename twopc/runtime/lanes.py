"""The held records of one split of a source, in the order in which they go."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from twopc.record import Batch, RecordError, Row


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A batch as it was read, the how many-th; with `is_error` a record that was not decoded, as a batch alone."""

    batch: Batch
    number: int
    is_error: bool = False


@dataclass(slots=True)
class _Chunk:
    """Records of one batch, by their indices there; `at` is the first that has not gone."""

    held: Held
    indices: Sequence[int]
    times: list[float]
    at: int = 0


class Lane:
    """Records of one split. A time that is missing, or smaller than one before it, counts as the greatest before it."""

    def __init__(self, source: str, split: str) -> None:
        self.source, self.split = source, split
        self.size = 0
        self._chunks: deque[_Chunk] = deque()
        self._last = -math.inf
        self._errors = 0

    @property
    def first(self) -> float:
        """The time of the first record; there is one."""
        return self._chunks[0].times[self._chunks[0].at]

    @property
    def begins_with_error(self) -> bool:
        return bool(self._errors) and self._chunks[0].held.is_error

    def bound(self, is_over: bool) -> float:
        """Return the time that no record is before which follows those of `times`; `is_over`: nothing more is read."""
        if self._errors:
            return next(chunk.times[0] for chunk in self._chunks if chunk.held.is_error)
        return math.inf if is_over else self._last

    def hold(self, held: Held, indices: Sequence[int], times: Sequence[float]) -> None:
        grown = list(accumulate(times, max, initial=self._last))[1:]
        self._chunks.append(_Chunk(held, indices, grown))
        self._last = grown[-1]
        self._errors += held.is_error
        self.size += len(grown)

    def hold_error(self, error: RecordError, number: int) -> None:
        self.hold(Held(Batch([], [], errors=[(0, error)]), number, is_error=True), [0], [-math.inf])

    def times(self, until: float, most: int) -> list[float]:
        """Return the times of the first records, none after this one, up to the first that was not decoded."""
        found: list[float] = []
        for chunk in self._chunks:
            if chunk.held.is_error:
                break
            stop = min(bisect_right(chunk.times, until, chunk.at), chunk.at + most - len(found))
            found += chunk.times[chunk.at : stop]
            if stop < len(chunk.times):
                break
        return found

    def take(self, count: int) -> Iterator[tuple[Held, Sequence[int]]]:
        """Take so many records, as the indices of each batch that some of them are of."""
        self.size -= count
        while count:
            chunk = self._chunks[0]
            taken = chunk.indices[chunk.at : chunk.at + count]
            count -= len(taken)
            chunk.at += len(taken)
            if chunk.at == len(chunk.indices):
                self._chunks.popleft()
                self._errors -= chunk.held.is_error
            yield chunk.held, taken

    def first_row(self) -> Row:
        """Return the row of the first record; there is one."""
        chunk = self._chunks[0]
        batch = chunk.held.batch
        return batch.errors[0][1].row if chunk.held.is_error else batch.rows[chunk.indices[chunk.at]]
