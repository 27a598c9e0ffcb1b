"""A moment, as the decisions see it."""

from __future__ import annotations

from typing import NamedTuple


class Instant(NamedTuple):
    """One reading of both clocks, in milliseconds.

    Deadlines use `monotonic_ms`, which never jumps and means nothing on another machine; `unix_ms` is for people.
    """

    monotonic_ms: int
    unix_ms: int
