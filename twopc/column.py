"""One function over one column: a plain comprehension, and when it raises, the record that it raised on.

The function is never called again to find that record: user functions may have side effects, and may not fail twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import length_hint
from pathlib import Path
from traceback import extract_tb
from typing import Any

from twopc.errors import UserCodeError
from twopc.record import Row

_OURS = Path(__file__).parent


class ColumnError(Exception):
    """A function raised on the element at `index` of a column; what it raised is `cause` and `__cause__`."""

    def __init__(self, index: int, cause: Exception) -> None:
        super().__init__(f"element {index}: {type(cause).__name__}: {cause}")
        self.index = index
        self.cause = cause


def last_taken(column: Sequence[Any], rest: Iterator[Any]) -> int:
    """Return the index of the element that a loop over `rest`, an iterator of the column, has taken last."""
    return len(column) - length_hint(rest) - 1


def map_column(function: Callable[[Any], Any], column: list[Any]) -> list[Any]:
    """Return the function's result for each element; raise ColumnError for the first element on which it raises."""
    rest = iter(column)
    try:
        return [function(element) for element in rest]
    except Exception as error:
        raise ColumnError(last_taken(column, rest), error) from error


def locate(row: Row) -> str:
    """Return where a record came from, as every error names it: topic[partition]@offset."""
    return f"{row.topic()}[{row.partition()}]@{row.offset()}"


def user_code_error(row: Row, what: str, cause: Exception) -> UserCodeError:
    """Return the error that says which record failed, in what, and why; raise it `from` the cause.

    The line of the user's file is in the message, because a traceback doesn't survive the way from subtask to driver.
    """
    return failure_at(f"record {locate(row)}", what, cause)


def failure_at(where: str, what: str, cause: Exception) -> UserCodeError:
    """Return the same for records that are named otherwise, as those of a whole batch."""
    lines = [frame for frame in extract_tb(cause.__traceback__) if _OURS not in Path(frame.filename).parents]
    at = f" ({Path(lines[-1].filename).name}:{lines[-1].lineno})" if lines else ""
    detail = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
    return UserCodeError(
        f"{where}: {what} failed: {detail}{at}. Correct the job or the input and start the same "
        "command again: it goes on from the last completed checkpoint"
    )
