"""A stream that is cut into windows, and the table of what each comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twopc.operators.window_step import Aggregate, Aggregation, Collect, Count, Reduce, Sum, WindowAggregate
from twopc.serde import Json, Serde
from twopc.state.forms import ListOf
from twopc.windows import Windows

if TYPE_CHECKING:
    from twopc.stream import Stream

Output = Callable[[str], "Stream"]
"""The values that come out of an operator under a name."""


class WindowedStream:
    """The records of a stream by key and window: one of the methods says what each window comes to.

    `name` is the operator's id, to which what is stored belongs. `state` is the serde of what a window comes to, whose
    form of it the functions see: JSON unless said otherwise.
    """

    def __init__(
        self, add: Callable[[WindowAggregate], Output], windows: Windows, grace_ms: int, idle_ms: int | None
    ) -> None:
        self._add, self._windows, self._grace_ms, self._idle_ms = add, windows, grace_ms, idle_ms

    def count(self, *, name: str) -> WindowedTable:
        """Count the records of each window."""
        return self._table(Count(), name, Json())

    def sum(self, *, name: str, state: Serde | None = None) -> WindowedTable:
        """Add up the values of each window, which are numbers."""
        return self._table(Sum(), name, state)

    def collect(self, *, name: str, state: Serde | None = None) -> WindowedTable:
        """List the values of each window, in the order in which they came; `state` is the serde of one of them.

        All of an open window's list is written anew with each checkpoint in which a record came to it.
        """
        return self._table(Collect(), name, ListOf(Json() if state is None else state))

    def reduce(self, function: Callable[[Any, Any], Any], *, name: str, state: Serde | None = None) -> WindowedTable:
        """Put the values of a window together: `function(so far, value)`, from its second record on.

        What the first comes to is its value, so values and what they come to are of one type, which `state` encodes.
        """
        return self._table(Reduce(function), name, state)

    def aggregate(
        self,
        initial: Any,
        function: Callable[[Any, Any], Any],
        *,
        name: str,
        state: Serde | None = None,
        merge: Callable[[Any, Any], Any] | None = None,
    ) -> WindowedTable:
        """Bring the values of a window into an aggregate: `function(aggregate, value)` returns the new one.

        `initial` is the aggregate of no record, or a function without arguments that returns it. Sessions need
        `merge(earlier, later)` too, which makes one aggregate of two.
        """
        return self._table(Aggregate(initial, function, merge), name, state)

    def _table(self, aggregation: Aggregation, name: str, state: Serde | None) -> WindowedTable:
        serde = Json() if state is None else state
        step = WindowAggregate(self._windows, self._grace_ms, aggregation, name, serde, self._idle_ms)
        return WindowedTable(self._add(step))


class WindowedTable:
    """The results of each window of each key: a stream of what is final, one of every change, one of what was late.

    The values of `final()` and `current()` are `Window(start, end, value)`; the key is that of the records, there are
    no headers.
    """

    def __init__(self, output: Output) -> None:
        self._output = output

    def final(self) -> Stream:
        """Return the stream of closed windows: each once, when stream time has reached its end and the grace.

        Stream time is the greatest timestamp seen under the partition number: a window closes when a later record comes
        there. A session closes when stream time is more than its gap and the grace behind its last record, a sliding
        window when it is more than the grace behind its end. Windows
        come in the order in which they close; the timestamp is the last millisecond that belongs to the window.
        """
        return self._output("final")

    def current(self) -> Stream:
        """Return the stream of changes: behind each record, what its windows come to; the timestamp is the record's.

        A session that grew has another start or end than when it was last told, which nobody takes back. Of sliding
        windows those that begin behind the record are told too, when it has made them.
        """
        return self._output("current")

    def late(self) -> Stream:
        """Return the stream of records, as they were, whose windows had all closed when they came: none has them."""
        return self._output("late")
