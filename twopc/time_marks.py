"""What tells event time in a topic of a job's own: how far it has come before the `key_by`.

A mark is a record without key and value, with the time in a header; the records of a `key_by` all have a key. What is
behind it in its partition is of no earlier time, but for what is behind its time where it comes from. Such a record
tells that time itself, in the same header, so that it is late behind the `key_by` where it would be late before it.

So time passes behind a `key_by` in the order of the topic, whoever reads it, and however often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twopc.record import Batch, ErrorStage, Headers, RecordError, Row
from twopc.stand_ins import PassedTime

READING = "reading a mark of time"

HEADER = "__twopc.time"
"""The time, as text: of a mark, or the greatest timestamp before a record where that comes from."""

FIRST_MS = 1
"""The least timestamp that the Kafka client writes."""


class TimePassed(Exception):
    """Raised by nobody: the cause that stands for a mark among what is no record of a batch."""

    def __init__(self, time: int) -> None:
        super().__init__(f"stream time has come to {time}")
        self.time = time


def new_marks(numbers: Sequence[int], time: int) -> Batch:
    """Return marks of a time for these partitions."""
    count = len(numbers)
    headers: list[Headers | None] = [[(HEADER, b"%d" % time)]] * count
    rows = [PassedTime(number) for number in numbers]
    return Batch(rows, [None] * count, [None] * count, [max(time, FIRST_MS)] * count, headers)


def as_read(batch: Batch) -> Batch:
    """Return a batch as it was read with its marks among what is no record (`Batch.errors`)."""
    if None not in batch.keys:
        return _with_errors(batch, []) if batch.errors else batch
    marks = [index for index, key in enumerate(batch.keys) if key is None and is_mark(batch.rows[index])]
    return _with_errors(batch, marks)


def with_own_times(batch: Batch, times: Mapping[int, int]) -> Batch:
    """Return a batch to be written in which the records at these places tell their own times."""
    headers = list(batch.headers)
    for index, time in times.items():
        headers[index] = [*(headers[index] or ()), (HEADER, b"%d" % time)]
    return batch.with_headers(headers)


def own_time(row: Row) -> int | None:
    """Return the time that a mark or a record tells itself; None for a record that is not behind it."""
    return next((int(value or 0) for name, value in row.headers() or () if name == HEADER), None)


def without_own_times(batch: Batch) -> Batch:
    """Return a batch as it was read without the headers that tell time: functions don't see them."""
    if not any(batch.headers) or not any(map(_tells_time, batch.headers)):
        return batch
    headers = [[each for each in some if each[0] != HEADER] or None if some else some for some in batch.headers]
    plain = batch.with_headers(headers)
    plain.errors = batch.errors
    return plain


def _tells_time(headers: Headers | None) -> bool:
    return headers is not None and any(name == HEADER for name, _ in headers)


def is_mark(row: Row) -> bool:
    """Whether a record is a mark."""
    return row.key() is None and row.value() is None and own_time(row) is not None


def time_of(error: RecordError) -> int | None:
    """Return the time of a mark; None for a record that went wrong."""
    return error.cause.time if isinstance(error.cause, TimePassed) else None


def without_marks(errors: Sequence[tuple[int, RecordError]]) -> int:
    """Return how many of these went wrong: the others are marks."""
    return sum(time_of(error) is None for _, error in errors)


def _with_errors(batch: Batch, marks: Sequence[int]) -> Batch:
    """Return the batch without its rows at these places, which are marks."""
    found = [(before, 0, _mark(error.row) if is_mark(error.row) else error) for before, error in batch.errors]
    found += [(at, 1, _mark(batch.rows[at])) for at in marks]
    apart = batch
    if marks:
        gone = frozenset(marks)
        apart = batch.take([index for index in range(len(batch)) if index not in gone])
    found.sort(key=lambda each: each[:2])
    apart.errors = [(before - sum(at < before for at in marks), error) for before, _, error in found]
    return apart


def _mark(row: Row) -> RecordError:
    return RecordError(row, ErrorStage.KEY_CONVERTER, READING, TimePassed(own_time(row) or 0))
