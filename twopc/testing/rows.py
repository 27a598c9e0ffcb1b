"""Input records without a broker, for tests of operators and sinks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from twopc.record import Batch, Headers


@dataclass(frozen=True, slots=True)
class InputRow:
    """One record as a source hands it over."""

    value_: Any
    key_: Any = None
    partition_: int = 0
    offset_: int = 0
    timestamp_: int | None = None
    headers_: Headers | None = None
    topic_: str = "in"

    def topic(self) -> str:
        return self.topic_

    def partition(self) -> int:
        return self.partition_

    def offset(self) -> int:
        return self.offset_

    def key(self) -> Any:
        return self.key_

    def value(self) -> Any:
        return self.value_

    def timestamp(self) -> tuple[int, int]:
        return (0, -1) if self.timestamp_ is None else (1, self.timestamp_)

    def headers(self) -> Headers | None:
        return self.headers_


def keys_in(rows: Sequence[InputRow]) -> list[Any]:
    return [row.key_ for row in rows]


def values_in(rows: Sequence[InputRow]) -> list[Any]:
    return [row.value_ for row in rows]


def batch_of(rows: Iterable[InputRow]) -> Batch:
    """Return the batch that a source makes of these rows."""
    kept = list(rows)
    return Batch(kept, [row.value_ for row in kept])


def batch_of_values(*values: Any) -> Batch:
    """Return a batch of these values without keys, at offsets 0, 1, ... of in[0]."""
    return batch_of(InputRow(value, offset_=offset) for offset, value in enumerate(values))
