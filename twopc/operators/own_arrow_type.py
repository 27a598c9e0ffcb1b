"""The Arrow type that an object has by itself, whichever others come with it.

Arrow takes the type of a column from all of its values: an integer beside a float becomes a float, and a field that one
object lacks is null in it. So what a function makes of a record would depend on how its partition is cut into batches.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import islice
from typing import Any, cast

import pyarrow as pa

_FLAT: dict[type, pa.DataType] = {
    bytes: pa.binary(),
    str: pa.string(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
}
_NONE = type(None)

KINDS_MAX = 1_000
"""Of how many kinds of objects the type is remembered."""


class OwnTypes:
    """Tells which values have one type, and which. None by itself is bytes that aren't there."""

    def __init__(self) -> None:
        self._types: dict[Hashable, pa.DataType] = {}

    def first_run(self, values: Sequence[Any]) -> tuple[pa.DataType, int]:
        """Return the type of the first value, and how many from there on have it; raise TypeError if it has none."""
        if (flat := _flat(set(map(type, values)))) is not None:
            return flat, len(values)
        kind = _kind(values[0])
        count = 1
        for value in islice(values, 1, None):
            if not _is_of(kind, value):
                break
            count += 1
        return self._type(kind, values[0]), count

    def _type(self, kind: Hashable, value: Any) -> pa.DataType:
        if kind not in self._types:
            if len(self._types) >= KINDS_MAX:
                self._types.clear()
            self._types[kind] = pa.binary() if value is None else _inferred(value)
        return self._types[kind]


def _flat(kinds: set[type]) -> pa.DataType | None:
    """Return the type of values of these classes, if it is one and the same for all."""
    if kinds <= {bytes, _NONE}:
        return pa.binary()
    return _FLAT.get(kinds.pop()) if len(kinds) == 1 else None


def _is_of(kind: Hashable, value: Any) -> bool:
    try:
        return _kind(value) == kind
    except TypeError:
        return False


def _kind(value: Any) -> Hashable:
    """Return what the type follows from."""
    return _inner_kind(b"" if value is None else value)


def _inner_kind(value: Any) -> Hashable:
    match type(value):
        case kind if kind in _FLAT or kind is _NONE:
            return cast(Hashable, kind)
        case kind if kind is dict:
            return (dict, *((name, _inner_kind(each)) for name, each in value.items()))
        case kind if kind in (list, tuple):
            return (list, *dict.fromkeys(map(_inner_kind, value)))
        case _:
            return str(_inferred(value))


def _inferred(value: Any) -> pa.DataType:
    try:
        return pa.infer_type([value])
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        name = type(value).__name__
        problem = f"{name} has no Arrow type of its own ({error}): give map_batches value_type=, or key_type="
        raise TypeError(problem) from error
