"""One function over one column: a plain comprehension, and when it raises, the record that it raised on.

The function is never called again to find that record: user functions may have side effects, and may not fail twice.
Whatever it raises is an error of that record, a SystemExit too; only the end of the process itself passes through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import singledispatch
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

from twopc.errors import Unavailable, UserCodeError
from twopc.termination import TERMINATION

if TYPE_CHECKING:
    from twopc.record import Row

_OURS = Path(__file__).parent


class ColumnError(Exception):
    """A function raised on the element at `index` of a column; what it raised is `cause` and `__cause__`.

    `results` are those of the elements before it, where they are known: then the function is not called for them again.
    """

    def __init__(self, index: int, cause: BaseException, results: list[Any] | None = None) -> None:
        super().__init__(f"element {index}: {type(cause).__name__}: {cause}")
        self.index = index
        self.cause = cause
        self.results = results


Over = Callable[[list[Any]], Iterator[Any]]
"""The way a function goes over a column: `iter`, or a loop that can be watched or cut short."""


class ColumnLoop:
    """The loop of a user function over a column, as another thread sees it: where it is, and how to end it early.

    A loop that may be cut goes over a copy, and ends where that is cut off: nothing is asked between two elements.
    """

    def __init__(self) -> None:
        self._rest: Iterator[Any] | None = None
        self._copy: list[Any] = []

    def whole(self, column: list[Any]) -> Iterator[Any]:
        """Go over all of the column."""
        self._rest = rest = iter(column)
        return rest

    def until_cut(self, column: list[Any]) -> Iterator[Any]:
        """Go over the column until `cut` is called; over its first element in any case."""
        copy = column.copy()
        self._rest = rest = iter(copy)
        self._copy = copy
        return rest

    def cut(self) -> None:
        """End the loop that may be cut, if one runs, after the element that it has in hand. For another thread."""
        del self._copy[1:]

    def index(self) -> int:
        """Return the index of the element in hand; -1 between two loops."""
        return -1 if self._rest is None else last_taken(self._rest)

    def done(self) -> None:
        """The loop is over."""
        self._rest, self._copy = None, []


def last_taken(rest: Iterator[Any]) -> int:
    """Return the index of the element that a loop over `rest`, an iterator of a list, has taken last.

    That is the iterator's own account of itself: the list may have been cut off since. -1 if it is exhausted.
    """
    account: Any = rest
    _, _, *index = account.__reduce__()
    return int(index[0]) - 1 if index else -1


def map_part(
    function: Callable[[Any], Any], column: list[Any], over: Over = iter
) -> tuple[list[Any], BaseException | None]:
    """Return the function's results up to the first element on which it raises, and what it raised; None for nothing.

    What it raised is of the element behind those that have results.
    """
    rest = over(column)
    results: list[Any] = []
    return results, extend_from(results, map(function, rest), rest)


def extend_from(results: list[Any], produced: Iterator[Any], rest: Iterator[Any]) -> BaseException | None:
    """Extend a list by what is produced of `rest`, as far as that goes; return what was raised, None for nothing."""
    try:
        results.extend(produced)
    except TERMINATION:
        raise
    except BaseException as error:  # noqa: BLE001 - it is an error of the element in hand
        return error
    # What a function raises as StopIteration ends the list as the end of the column does, but does not exhaust it.
    return StopIteration("raised by the function") if last_taken(rest) >= 0 else None


def map_column(function: Callable[[Any], Any], column: list[Any]) -> list[Any]:
    """Return the function's result for each element; raise ColumnError for the first element on which it raises."""
    results, cause = map_part(function, column)
    if cause is not None:
        raise ColumnError(len(results), cause, results) from cause
    return results


Failures = dict[int, BaseException]
"""The exceptions on some elements of a column, by their index."""


def code_column(
    method: Callable[[list[Any]], list[Any]], column: list[Any], rows: Sequence[Row], doing: str
) -> tuple[list[Any], Failures]:
    """Return what a serde's column method makes of a column of these rows, and what it raised on which elements.

    Those have a None in the result. Raise UserCodeError where the method fails without saying on which, and Unavailable
    where it says that it can't work now.
    """
    try:
        return _whole(method, column), {}
    except (*TERMINATION, Unavailable):
        raise
    except ColumnError as error:
        first = error
    except BaseException as error:
        raise failure_at(span(rows), doing, error) from error
    return _around(first, method, column, rows, doing)


def _around(
    error: ColumnError, method: Callable[[list[Any]], list[Any]], column: list[Any], rows: Sequence[Row], doing: str
) -> tuple[list[Any], Failures]:
    """Go on behind each element on which the method failed."""
    results: list[Any] = []
    failures: Failures = {}
    start = 0
    while True:
        bad = start + error.index
        results += method(column[start:bad]) if error.results is None else error.results
        results.append(None)
        failures[bad] = error.cause
        start = bad + 1
        try:
            results += _whole(method, column[start:])
        except (*TERMINATION, Unavailable):
            raise
        except ColumnError as next_error:
            error = next_error
            continue
        except BaseException as raised:
            raise failure_at(span(rows[start:]), doing, raised) from raised
        return results, failures


def _whole(method: Callable[[list[Any]], list[Any]], column: list[Any]) -> list[Any]:
    result = method(column)
    if len(result) != len(column):
        raise ValueError(f"the serde returned {len(result)} elements for {len(column)}")
    # A serde of a user's may return any sequence; what is compiled goes over lists.
    return result if type(result) is list else list(result)


def coded(method: Callable[[list[Any]], list[Any]], column: list[Any], rows: Sequence[Row], doing: str) -> list[Any]:
    """Return what a serde's column method makes of a column of these rows; raise UserCodeError where it can't."""
    results, failures = code_column(method, column, rows, doing)
    for index, cause in failures.items():
        raise user_code_error(rows[index], doing, cause) from cause
    return results


def span(rows: Sequence[Row]) -> str:
    """Return what an error calls these rows where nobody knows which of them is at fault."""
    return f"records {locate(rows[0])} to {locate(rows[-1])}"


def locate(row: Row) -> str:
    """Return where a record came from, as every error names it: topic[partition]@offset."""
    return f"{row.topic()}[{row.partition()}]@{row.offset()}"


@singledispatch
def named(row: Row) -> str:
    """Return what a row stands for, as errors name it: a record, unless its class has a name of its own."""
    return f"record {locate(row)}"


def user_code_error(row: Row, what: str, cause: BaseException) -> UserCodeError:
    """Return the error that says which record failed, in what, and why; raise it `from` the cause.

    The line of the user's file is in the message, because a traceback doesn't survive the way from subtask to driver.
    """
    return failure_at(named(row), what, cause)


def message_of(cause: BaseException) -> str:
    """Return what an exception says; a user's class may fail to say it."""
    try:
        return str(cause)
    except Exception as error:  # noqa: BLE001 - the record has failed, not what tells of it
        return f"(its message can't be read: {type(error).__name__})"


def failure_at(where: str, what: str, cause: BaseException) -> UserCodeError:
    """Return the same for records that are named otherwise, as those of a whole batch."""
    lines = [frame for frame in extract_tb(cause.__traceback__) if _OURS not in Path(frame.filename).parents]
    at = f" ({Path(lines[-1].filename).name}:{lines[-1].lineno})" if lines else ""
    message = message_of(cause)
    detail = f"{type(cause).__name__}: {message}" if message else type(cause).__name__
    return UserCodeError(
        f"{where}: {what} failed: {detail}{at}. Correct the job or the input and start the same "
        "command again: it goes on from the last completed checkpoint"
    )
