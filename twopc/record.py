"""One record, and a batch of records as columns.

Batches are structs of arrays: operators work on a column at a time, and a `Record` is made only for a user function
that asks for one. The columns of a batch are equally long; `rows[i]` is the source row that row i came from, whatever
was mapped since, so that an error can name its topic, partition and offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from twopc.column import coded, last_taken, user_code_error
from twopc.errors import TwoPhaseCommitError

if TYPE_CHECKING:
    from twopc.serde import Serde

Headers = Sequence[tuple[str, bytes | None]]


class Row(Protocol):
    """A record as its source hands it over; confluent-kafka's `Message` is one."""

    def topic(self) -> str | None: ...
    def partition(self) -> int | None: ...
    def offset(self) -> int | None: ...
    def key(self) -> Any: ...
    def value(self) -> Any: ...
    def timestamp(self) -> tuple[int, int]: ...
    def headers(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Record:
    """One record as a user function sees it: decoded key and value, and where it came from.

    `timestamp` is Unix milliseconds, or None. `topic`, `partition` and `offset` are those of the input record and are
    not changed by `replace`.
    """

    key: Any
    value: Any
    timestamp: int | None = None
    headers: Headers | None = None
    topic: str = ""
    partition: int = -1
    offset: int = -1

    def replace(
        self,
        *,
        key: Any = ...,
        value: Any = ...,
        timestamp: int | Any | None = ...,
        headers: Headers | Any | None = ...,
    ) -> Record:
        """Return a copy with these fields changed; what is not named stays."""
        return Record(
            key=self.key if key is ... else key,
            value=self.value if value is ... else value,
            timestamp=self.timestamp if timestamp is ... else timestamp,
            headers=self.headers if headers is ... else headers,
            topic=self.topic,
            partition=self.partition,
            offset=self.offset,
        )


class Stage(StrEnum):
    """Where a record went wrong, in Kafka Connect's words: decoding its key or value, in an operator, at a sink."""

    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    TRANSFORMATION = "TRANSFORMATION"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"


class RecordFault(Exception):
    """What is wrong with a record, where `error` names it already: no function of the user's raised this."""

    def __init__(self, error: TwoPhaseCommitError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class RecordError:
    """What was raised on one record: the row that it came from, where, in doing what."""

    row: Row
    stage: Stage
    doing: str
    cause: BaseException

    @property
    def exception(self) -> BaseException:
        """What a person is told was raised."""
        return self.cause.error if isinstance(self.cause, RecordFault) else self.cause

    def named(self) -> TwoPhaseCommitError:
        """Return the error that ends a job."""
        if isinstance(self.cause, RecordFault):
            return self.cause.error
        error = user_code_error(self.row, self.doing, self.cause)
        error.__cause__ = self.cause
        return error


class RecordsRefused(Exception):
    """A writer could not write these records of a batch, and has `written` so many: all the others."""

    def __init__(self, errors: Sequence[RecordError], written: int) -> None:
        super().__init__(str(errors[0].named()))
        self.errors = errors
        self.written = written


class Batch:
    """Records as columns. Keys, timestamps and headers are read from the rows when first asked for.

    `errors`, of a batch as a source hands it over, are the records that it could not decode, each with the number of
    records of the batch that stand before it.
    """

    __slots__ = ("_headers", "_keys", "_timestamps", "errors", "rows", "values")

    def __init__(
        self,
        rows: Sequence[Row],
        values: list[Any],
        keys: list[Any] | None = None,
        timestamps: list[int | None] | None = None,
        headers: list[Headers | None] | None = None,
        errors: Sequence[tuple[int, RecordError]] = (),
    ) -> None:
        self.rows = rows
        self.values = values
        self._keys = keys
        self._timestamps = timestamps
        self._headers = headers
        self.errors = errors

    def __len__(self) -> int:
        return len(self.values)

    @property
    def keys(self) -> list[Any]:
        if self._keys is None:
            self._keys = [row.key() for row in self.rows]
        return self._keys

    def encoded_values(self, serde: Serde, doing: str) -> list[bytes | None]:
        """Return the values as bytes; raise UserCodeError, which names the record, for one that can't be encoded."""
        return coded(serde.serialize_all, self.values, self.rows, doing)

    @property
    def timestamps(self) -> list[int | None]:
        """Unix milliseconds; None where the input has none."""
        if self._timestamps is None:
            stamps = [row.timestamp() for row in self.rows]
            self._timestamps = [stamp if kind else None for kind, stamp in stamps]
        return self._timestamps

    @property
    def headers(self) -> list[Headers | None]:
        if self._headers is None:
            rest = iter(self.rows)
            try:
                self._headers = [row.headers() for row in rest]
            except (SystemError, ValueError) as error:
                row = self.rows[last_taken(rest)]
                # confluent-kafka fails within a failure, and a second question to the same row would crash.
                cause = error.__cause__ or error
                raise user_code_error(row, "reading the headers, whose names must be UTF-8,", cause) from error
        return self._headers

    def records(self) -> list[Record]:
        """Return each row as a record."""
        columns = zip(self.rows, self.keys, self.values, self.timestamps, self.headers, strict=True)
        return [
            Record(key, value, timestamp, headers, row.topic() or "", _number(row.partition()), _number(row.offset()))
            for row, key, value, timestamp, headers in columns
        ]

    def with_values(self, values: list[Any]) -> Batch:
        """Return the same records with other values."""
        return Batch(self.rows, values, self._keys, self._timestamps, self._headers)

    def with_timestamps(self, timestamps: list[int | None]) -> Batch:
        """Return the same records with other timestamps."""
        return Batch(self.rows, self.values, self._keys, timestamps, self._headers)

    def first(self, count: int) -> Batch:
        """Return the first so many rows."""
        return self if count == len(self) else self.part(0, count)

    def behind(self, count: int) -> Batch:
        """Return the rows behind the first so many."""
        return self.part(count, len(self))

    def part(self, start: int, stop: int) -> Batch:
        """Return the rows from `start` on, up to before `stop`."""

        def cut(column: Any) -> Any:
            return None if column is None else column[start:stop]

        return Batch(cut(self.rows), cut(self.values), cut(self._keys), cut(self._timestamps), cut(self._headers))

    def take(self, indices: Sequence[int]) -> Batch:
        """Return these rows, in this order; an index may occur more than once."""

        def pick(column: Sequence[Any] | None) -> Any:
            return None if column is None else [column[index] for index in indices]

        return Batch(pick(self.rows), pick(self.values), pick(self._keys), pick(self._timestamps), pick(self._headers))


def _number(known: int | None) -> int:
    return -1 if known is None else known
