"""What a window comes to, by its definition: each value as its serde gives it back."""

from __future__ import annotations

from numbers import Number
from typing import Any, assert_never

from twopc.operators.window_step import Aggregate, Collect, Count, Reduce, Sum, WindowAggregate


class PlainValues:
    """The values of one step's windows, encoded; all methods raise what functions and serdes raise."""

    def __init__(self, step: WindowAggregate) -> None:
        self._serde, self._aggregation = step.serde, step.aggregation

    def shown(self, held: bytes) -> Any:
        """Return a value as the serde gives it back."""
        return self._serde.deserialize(held)

    def add(self, held: bytes | None, value: Any) -> bytes:
        """Return the value of a window with one record more; None is that of no record."""
        so_far: Any = None if held is None else self.shown(held)
        match self._aggregation:
            case Count():
                return self._held((so_far or 0) + 1)
            case Sum():
                if isinstance(value, bool) or not isinstance(value, Number):
                    raise TypeError(f"sum adds numbers, and this is {type(value).__name__}")
                return self._held(value if held is None else so_far + value)
            case Collect():
                return self._held([*(so_far or []), value])
            case Reduce(function):
                return self._held(value if held is None else function(so_far, value))
            case Aggregate(initial, function):
                return self._held(function(self._initial(initial) if held is None else so_far, value))
            case _:
                assert_never(self._aggregation)

    def merge(self, earlier: bytes, later: bytes) -> bytes:
        """Return the value of two windows that have become one."""
        both = self.shown(earlier), self.shown(later)
        match self._aggregation:
            case Count() | Sum() | Collect():
                return self._held(both[0] + both[1])
            case Reduce(function):
                return self._held(function(*both))
            case Aggregate(merge=function):
                assert function is not None, "an aggregate over sessions has it"
                return self._held(function(*both))
            case _:
                assert_never(self._aggregation)

    def _initial(self, initial: Any) -> Any:
        value = initial() if callable(initial) else initial
        return None if value is None else self.shown(self._held(value))

    def _held(self, value: Any) -> bytes:
        encoded = None if value is None else self._serde.serialize(value)
        if encoded is None:
            raise ValueError("what a window comes to can't be None")
        return encoded
