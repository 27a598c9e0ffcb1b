"""The value of a window while it is open: as bytes of its serde, or as an integer where the serde is JSON's.

A function sees each value as the serde gives it back, so what comes out does not depend on when it was stored.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any, assert_never

from twopc.operators.window_step import Aggregate, Aggregation, Collect, Count, Reduce, Sum, WindowAggregate
from twopc.serde import Json

INTEGERS = range(-(2**63), 2**64)
"""The integers of JSON's serde: they come back as they were, so they need no coding between two records."""

Held = Any
"""The value of an open window, as bytes or an integer."""

Add = Callable[[Held | None, Any], Held]
"""Returns a window's value with one record more; None where it has none yet. Raises what the function raises."""

Merge = Callable[[Held, Held], Held]
"""Returns the value of two windows that have become one; the earlier is the first."""


class WindowValues:
    """The values of one step's windows: how they are held, shown and stored."""

    def __init__(self, step: WindowAggregate) -> None:
        self._step = step
        self._serde = step.serde
        self._is_json = type(step.serde) is Json
        self.add = self._adding(step.aggregation)
        self.merge = self._merging(step.aggregation)

    def shown(self, held: Held) -> Any:
        """Return a value as the serde gives it back."""
        if type(held) is int:
            return held
        try:
            return self._serde.deserialize(held)
        except Exception as error:
            raise ValueError(f"the stored value of a window can't be decoded by {self._serde}: {error}") from error

    def taken(self, stored: bytes) -> Held:
        """Return what is held of a value that was stored."""
        return int(stored) if self._is_json and stored.isdigit() else stored

    def stored(self, held: Held) -> bytes:
        """Return a value as it is stored."""
        return b"%d" % held if type(held) is int else held

    def _held(self, value: Any) -> Held:
        if value is None:
            raise ValueError("what a window comes to can't be None")
        if self._is_json and type(value) is int and value in INTEGERS:
            return value
        try:
            encoded = self._serde.serialize(value)
        except Exception as error:
            raise ValueError(f"what the window comes to can't be encoded by {self._serde}: {error}") from error
        if encoded is None:
            raise ValueError(f"what the window comes to is nothing to {self._serde}")
        return encoded

    def _adding(self, aggregation: Aggregation) -> Add:
        match aggregation:
            case Count():
                return _one_more
            case Sum():
                return self._sum
            case Collect():
                return lambda held, value: (held or b"") + self._held([value])
            case Reduce(function):
                return lambda held, value: self._held(value if held is None else function(self.shown(held), value))
            case Aggregate(initial, function):
                start = initial if callable(initial) else lambda: initial
                return lambda held, value: self._held(
                    function(self._copy(start()) if held is None else self.shown(held), value)
                )
            case _:
                assert_never(aggregation)

    def _merging(self, aggregation: Aggregation) -> Merge:
        match aggregation:
            case Count():
                return int.__add__
            case Sum():
                return lambda held, other: self._held(self.shown(held) + self.shown(other))
            case Collect():
                return bytes.__add__
            case Reduce(function) | Aggregate(merge=function) if function is not None:
                return lambda held, other: self._held(function(self.shown(held), self.shown(other)))
            case _:
                return self._no_merge

    def _sum(self, held: Held | None, value: Any) -> Held:
        # An abstract class takes a while to ask.
        if type(value) not in (int, float) and (isinstance(value, bool) or not isinstance(value, Number)):
            raise TypeError(f"sum adds numbers, and this is {type(value).__name__}: map values to numbers first")
        return self._held(value if held is None else self.shown(held) + value)

    def _no_merge(self, held: Held, other: Held) -> Held:
        raise AssertionError(f"{self._step} has nothing that merges windows")

    def _copy(self, initial: Any) -> Any:
        """Return the value to start with as the serde gives it back: the function may change what it is given."""
        return None if initial is None else self.shown(self._held(initial))


def _one_more(held: int | None, value: Any) -> int:
    return 1 if held is None else held + 1
