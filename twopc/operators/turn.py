"""The records whose turn it is: of one source, or of several that meet, in one order."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

from twopc.column_rows import places_of
from twopc.operators.meeting import Order
from twopc.record import Batch, Row
from twopc.time_marks import without_marks


@dataclass(frozen=True, slots=True)
class Turn:
    """Batches with their sources, those of one source in its order; none of them is empty.

    `order` has the number of each record among all of them, where they are of several sources. Then all were decoded.
    """

    parts: tuple[tuple[str, Batch], ...]
    order: Order | None = None

    @classmethod
    def of(cls, source: str, batch: Batch) -> Turn:
        """Return that of one batch."""
        return cls(((source, batch),))

    @property
    def source(self) -> str:
        """The source of the first."""
        return self.parts[0][0]

    @property
    def size(self) -> int:
        """How many rows these are, with those of records that were not decoded, and of marks of time."""
        return sum(len(batch) + len(batch.errors) for _, batch in self.parts)

    @property
    def records(self) -> int:
        """How many records these are, without marks of time."""
        return sum(len(batch) + without_marks(batch.errors) for _, batch in self.parts)

    def only(self, sources: Container[str]) -> Turn | None:
        """Return the records of some sources; None where there are none."""
        parts = tuple(part for part in self.parts if part[0] in sources)
        return replace(self, parts=parts) if parts else None

    def with_headers_read(self, sources: Container[str]) -> Turn:
        """Return the turn with the headers of these sources at hand, as `Batch.with_headers_read` has them."""
        parts = ((source, batch.with_headers_read() if source in sources else batch) for source, batch in self.parts)
        return replace(self, parts=tuple(parts))

    def rows_from(self, source: str, number: int) -> Iterator[Row]:
        """Yield the rows of one source from this number on in the order."""
        assert self.order is not None
        for name, batch in self.parts:
            if name == source:
                rows = (*batch.rows, *(error.row for _, error in batch.errors))
                yield from (row for row in rows if self.order[places_of([row])[0]] >= number)

    def source_of(self, read: str) -> str | None:
        """Return the source that has records of this input here; None where none has."""
        return next(
            (source for source, batch in self.parts if any(at[0] == read for at in places_of(batch.rows))), None
        )
