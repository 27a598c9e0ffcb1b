"""The records of one source that went wrong lately, each once: of the last 10,000 up to the last that did."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

from twopc.column_rows import Place, places_of
from twopc.error_policy import WINDOW
from twopc.record import Batch, Row


class LatelyWrong:
    """Used by one thread. `allowed` is how many of them are not too many; None for any number, then none is kept."""

    def __init__(self, allowed: int | None) -> None:
        self._allowed = allowed
        self._rows: Sequence[Row] = ()
        self._errors: Sequence[tuple[int, Row]] = ()
        self._first = 0
        self._numbers: dict[Place, int] | None = None
        self._wrong: list[int] = []
        self._without_place: deque[int] = deque()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._wrong) + len(self._without_place)

    def read(self, batch: Batch, before: int) -> None:
        """This batch was read, behind so many records."""
        if self._allowed is not None:
            self._rows = batch.rows
            self._errors = [(at, error.row) for at, error in batch.errors]
            self._first, self._numbers = before, None

    def too_many(self, row: Row) -> bool:
        """Count a record of the last batch, at whose place something went wrong; say whether there are too many."""
        if self._allowed is None:
            return False
        if self._numbers is None:
            self._numbers = self._numbered()
        number = self._numbers.get(places_of([row])[0])
        if number is None:
            # Time passed without a record: whatever goes wrong then counts by itself.
            self._without_place.append(self._first + len(self._numbers) - 1)
        elif (at := bisect_left(self._wrong, number)) == len(self._wrong) or self._wrong[at] != number:
            self._wrong.insert(at, number)
        latest = max(numbers[-1] for numbers in (self._wrong, self._without_place) if numbers)
        while self._wrong and self._wrong[0] <= latest - WINDOW:
            del self._wrong[0]
        while self._without_place and self._without_place[0] <= latest - WINDOW:
            self._without_place.popleft()
        return self.count > self._allowed

    def _numbered(self) -> dict[Place, int]:
        """Return the number of each record of the batch among all that were read."""
        rows = list(self._rows)
        for at, row in reversed(self._errors):
            rows.insert(at, row)
        return {place: self._first + index for index, place in enumerate(places_of(rows))}
