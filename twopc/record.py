"""One record, and a batch of records as columns.

Batches are structs of arrays: operators work on a column at a time, and a `Record` is made only for a user function
that asks for one. The columns of a batch are equally long; `rows[i]` is the source row that row i came from, whatever
was mapped since, so that an error can name its topic, partition and offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Protocol

from twopc import column_rows
from twopc.column import coded, extend_from, last_taken, user_code_error
from twopc.errors import TwoPhaseCommitError
from twopc.packed_column import Column, PackedColumn
from twopc.stand_ins import WithoutHeaders

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


class ErrorStage(StrEnum):
    """The stage at which a record went wrong, in Kafka Connect's words: decoding, an operator, or a sink."""

    HEADER_CONVERTER = "HEADER_CONVERTER"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    TRANSFORMATION = "TRANSFORMATION"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"


class RecordFault(Exception):
    """The fault of a record, where `error` names it already: no function of the user's raised this."""

    def __init__(self, error: TwoPhaseCommitError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class RecordError:
    """The error on one record: the row that it came from, where, in doing what."""

    row: Row
    stage: ErrorStage
    doing: str
    cause: BaseException

    @property
    def exception(self) -> BaseException:
        """The exception that a person is told of."""
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


READING_HEADERS = "reading the headers (names must be UTF-8)"


class Batch:
    """Records as columns; what is not given is read from the rows when first asked for, packed if they have it so.

    `errors`, of a batch as a source hands it over, are the records that it could not decode, each with the number of
    records of the batch that stand before it.
    """

    __slots__ = ("_headers", "_keys", "_records", "_timestamps", "_values", "errors", "rows")

    def __init__(
        self,
        rows: Sequence[Row],
        values: Column | None,
        keys: Column | None = None,
        timestamps: list[int | None] | None = None,
        headers: list[Headers | None] | None = None,
        errors: Sequence[tuple[int, RecordError]] = (),
    ) -> None:
        self.rows = rows
        self._values = values
        self._keys = keys
        self._timestamps = timestamps
        self._headers = headers
        self._records: list[Record] | None = None
        self.errors = errors

    def __len__(self) -> int:
        return len(self.rows) if self._values is None else len(self._values)

    @property
    def values(self) -> list[Any]:
        if self._values is None:
            self._values = column_rows.values_of(self.rows)
        elif isinstance(self._values, PackedColumn):
            self._values = self._values.unpack()
        return self._values

    @property
    def value_column(self) -> Column:
        """The values, packed if they are that."""
        if self._values is None:
            self._values = column_rows.packed_values_of(self.rows)
        return self.values if self._values is None else self._values

    @property
    def keys(self) -> list[Any]:
        if self._keys is None:
            self._keys = column_rows.keys_of(self.rows)
        elif isinstance(self._keys, PackedColumn):
            self._keys = self._keys.unpack()
        return self._keys

    @property
    def key_column(self) -> Column:
        """The keys, packed if they are that."""
        if self._keys is None:
            self._keys = column_rows.packed_keys_of(self.rows)
        return self.keys if self._keys is None else self._keys

    @property
    def timestamp_column(self) -> list[int | None] | PackedColumn:
        """The timestamps, packed if they are that; then each is one that librdkafka can write."""
        packed = column_rows.packed_timestamps_of(self.rows) if self._timestamps is None else None
        return self.timestamps if packed is None else packed

    def encoded_values(self, serde: Serde, doing: str) -> list[bytes | None]:
        """Return the values as bytes; raise UserCodeError, which names the record, for one that can't be encoded."""
        return coded(serde.serialize_all, self.values, self.rows, doing)

    @property
    def timestamps(self) -> list[int | None]:
        """Unix milliseconds; None where the input has none."""
        if self._timestamps is None:
            self._timestamps = column_rows.timestamps_of(self.rows)
        return self._timestamps

    @property
    def headers(self) -> list[Headers | None]:
        if self._headers is None:
            self._headers = column_rows.headers_of(self.rows)
        if self._headers is None:
            rest = iter(self.rows)
            try:
                self._headers = [row.headers() for row in rest]
            except (SystemError, ValueError) as error:
                row = self.rows[last_taken(rest)]
                raise user_code_error(row, READING_HEADERS, _root_error(error)) from error
        return self._headers

    def with_headers_read(self) -> Batch:
        """Return the batch with its headers at hand; the records whose headers can't be read are among its errors."""
        if self._headers is None:
            self._headers = column_rows.headers_of(self.rows)
        if self._headers is not None:
            return self
        headers: list[Headers | None] = []
        bad: dict[int, BaseException] = {}
        rest = iter(self.rows)
        while (error := extend_from(headers, map(methodcaller("headers"), rest), rest)) is not None:
            bad[len(headers)] = _root_error(error)
            headers.append(None)
        self._headers = headers
        if not bad:
            return self
        readable = self.take([index for index in range(len(self)) if index not in bad])
        found = [
            (at, RecordError(WithoutHeaders(self.rows[at]), ErrorStage.HEADER_CONVERTER, READING_HEADERS, cause))
            for at, cause in bad.items()
        ]
        # What stands before a row stands before what is wrong with that row.
        every = sorted([*self.errors, *found], key=lambda each: (each[0], isinstance(each[1].row, WithoutHeaders)))
        readable.errors = [(at - sum(index < at for index in bad), each) for at, each in every]
        return readable

    def records(self) -> list[Record]:
        """Return each row as a record; a part of this batch has the same ones."""
        if self._records is None:
            places = column_rows.places_of(self.rows)
            columns = zip(places, self.keys, self.values, self.timestamps, self.headers, strict=True)
            self._records = [
                Record(key, value, timestamp, headers, *place) for place, key, value, timestamp, headers in columns
            ]
        return self._records

    def with_values(self, values: Column) -> Batch:
        """Return the same records with other values."""
        return Batch(self.rows, values, self._keys, self._timestamps, self._headers)

    def with_keys(self, keys: Column) -> Batch:
        """Return the same records with other keys."""
        return Batch(self.rows, self._values, keys, self._timestamps, self._headers)

    def with_timestamps(self, timestamps: list[int | None]) -> Batch:
        """Return the same records with other timestamps."""
        return Batch(self.rows, self._values, self._keys, timestamps, self._headers)

    def with_headers(self, headers: list[Headers | None]) -> Batch:
        """Return the same records with other headers."""
        return Batch(self.rows, self._values, self._keys, self._timestamps, headers)

    @staticmethod
    def joined(parts: Sequence[Batch]) -> Batch:
        """Return the records of several batches of one source as one, with those that it could not decode."""
        if len(parts) == 1:
            return parts[0]
        starts = accumulate(map(len, parts), initial=0)
        return Batch(
            [row for part in parts for row in part.rows],
            [value for part in parts for value in part.values],
            None if all(part._keys is None for part in parts) else [key for part in parts for key in part.keys],
            None if all(part._timestamps is None for part in parts) else [t for part in parts for t in part.timestamps],
            None
            if all(part._headers is None for part in parts)
            else [header for part in parts for header in part.headers],
            [
                (start + before, error)
                for start, part in zip(starts, parts, strict=False)
                for before, error in part.errors
            ],
        )

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

        part = Batch(cut(self.rows), cut(self._values), cut(self._keys), cut(self._timestamps), cut(self._headers))
        part._records = cut(self._records)
        return part

    def take(self, indices: Sequence[int]) -> Batch:
        """Return these rows, in this order; an index may occur more than once. A run of them is a `part`."""
        start, stop = (indices[0], indices[-1] + 1) if indices else (0, 0)
        if stop - start == len(indices) and indices == list(range(start, stop)):
            return self if len(indices) == len(self) and not self.errors else self.part(start, stop)

        def pick(column: Sequence[Any] | None) -> Any:
            return None if column is None else [column[index] for index in indices]

        rows = column_rows.take(self.rows, indices)
        # What is packed is taken as objects.
        values = None if self._values is None else self.values
        keys = None if self._keys is None else self.keys
        return Batch(rows, pick(values), pick(keys), pick(self._timestamps), pick(self._headers))

    def by_number(self, numbers: Sequence[int]) -> Batch:
        """Return the rows in the order of their numbers; those of one number stay as they are."""
        return self.take(sorted(range(len(numbers)), key=numbers.__getitem__))


def _root_error(error: BaseException) -> BaseException:
    """Return what was wrong with headers: confluent-kafka fails within a failure."""
    return error.__cause__ or error
