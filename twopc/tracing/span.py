"""A stretch of time that has a name, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Span:
    """From `start_ms` to `end_ms`, in Unix milliseconds; `error` says why it failed, "" if it did not.

    A span without a parent is a trace, of which its children, and theirs, are the rest.
    """

    name: str
    start_ms: float
    end_ms: float
    attributes: Mapping[str, Value] = field(default_factory=dict)
    error: str = ""
    children: tuple[Span, ...] = ()
