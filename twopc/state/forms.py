"""How a state that is more than one value of the user's serde is stored: with the time at which it was written.

    timed   time (8) | what the serde wrote

The time is in Unix milliseconds, NEVER where there was no time yet.
"""

from __future__ import annotations

import struct
from typing import Any

from twopc.serde import Serde

NEVER = -(2**63)
_TIME = struct.Struct(">q")


class Timed(Serde):
    """A value with the time at which it was written; to look at, it is the value."""

    def __init__(self, serde: Serde) -> None:
        self.serde = serde

    def deserialize(self, data: bytes | None) -> Any:
        return None if data is None else self.serde.deserialize(content(data))

    def serialize(self, value: Any) -> bytes | None:
        written = self.serde.serialize(value)
        return None if written is None else timed(None, written)

    def __repr__(self) -> str:
        return f"{self.serde!r} with a ttl"


def timed(at: int | None, written: bytes) -> bytes:
    """Return what is stored of a value that was written at this time."""
    return _TIME.pack(NEVER if at is None else at) + written


def time_of(stored: bytes) -> int | None:
    """Return when it was written, None where there was no time."""
    at: int = _TIME.unpack_from(stored)[0]
    return None if at == NEVER else at


def content(stored: bytes) -> bytes:
    """Return the value, encoded."""
    return stored[_TIME.size :]
