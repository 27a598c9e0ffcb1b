"""What stands in the job's own topic, as text: marks of time, and records with the time that they tell themselves."""

from __future__ import annotations

from twopc.record import Headers
from twopc.time_marks import HEADER

_MARK, _TOLD = "mark", "^"


def mark_text(headers: Headers | None) -> str:
    """Return a mark with the time that its headers tell."""
    return own_text(_MARK, headers)


def mark_of(text: str) -> int | None:
    """Return the time of a mark; None for a record."""
    return told_time(text) if text.startswith(_MARK) else None


def own_text(value: str, headers: Headers | None) -> str:
    """Return a record with the time that its headers tell."""
    told = dict(headers or ()).get(HEADER)
    return value if told is None else f"{value}{_TOLD}{told.decode()}"


def plain_text(text: str) -> str:
    """Return a record without the time that it tells."""
    return text.partition(_TOLD)[0]


def told_time(text: str) -> int | None:
    """Return the time that a record tells itself."""
    return int(told) if (told := text.partition(_TOLD)[2]) else None
