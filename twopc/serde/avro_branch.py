"""Values that know the branch of their union: of a branch that the value alone doesn't tell from another.

Such a value is one of its Python type in all else. It knows its branch as long as it is the same object: what is made
from it (`{**event, "id": 3}`) is a plain value again.
"""

from __future__ import annotations

from datetime import time
from decimal import Decimal
from typing import Any
from uuid import UUID


class InBranch:
    """Knows the branch of a union, by its type's name in the schema."""

    branch: str


class _Dict(InBranch, dict[Any, Any]):
    pass


class _Text(InBranch, str):
    pass


class _Bytes(InBranch, bytes):
    pass


class _Int(InBranch, int):
    pass


class _Float(InBranch, float):
    pass


class _Decimal(InBranch, Decimal):
    pass


class _Uuid(InBranch, UUID):
    pass


class _Time(InBranch, time):
    pass


_CLASSES: dict[type, type] = {str: _Text, bytes: _Bytes, int: _Int, float: _Float, Decimal: _Decimal}


def in_branch(branch: str, value: Any) -> Any:
    """Return an equal value that knows this branch."""
    made: Any
    match value:
        case dict():
            made = _Dict(value)
        case UUID():
            made = _Uuid(int=value.int)
        case time():
            made = _Time(value.hour, value.minute, value.second, value.microsecond)
        case _:
            kind = next((each for each in _CLASSES if isinstance(value, each) and not isinstance(value, bool)), None)
            if kind is None:
                raise TypeError(f"{value!r} can't be given a branch: its type alone says which it is")
            made = _CLASSES[kind](value)
    # A UUID lets nobody set anything.
    object.__setattr__(made, "branch", branch)
    return made


def branch_of(value: Any) -> str | None:
    """Return the branch that a value knows; None for one that knows none."""
    return getattr(value, "branch", None) if isinstance(value, InBranch) else None


def plain(value: Any) -> Any:
    """Return an equal value that knows no branch; raise TypeError for a value that knows none."""
    match value:
        case _Float():
            return float(value)
        case _Uuid():
            return UUID(int=value.int)
        case _Time():
            return time(value.hour, value.minute, value.second, value.microsecond)
    raise TypeError(f"{type(value).__name__} is no type of JSON")
