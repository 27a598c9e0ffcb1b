"""Rows that stand for what no source has handed over as it is: the output of a timer, time that passed, bad headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twopc.column import locate, named

if TYPE_CHECKING:
    from twopc.record import Row


@dataclass(frozen=True, slots=True)
class StandIn:
    """A stand-in for a record, at the place of a row and at its time; it has no headers."""

    place: Row

    def topic(self) -> str | None:
        return self.place.topic()

    def partition(self) -> int | None:
        return self.place.partition()

    def offset(self) -> int | None:
        return self.place.offset()

    def timestamp(self) -> tuple[int, int]:
        return self.place.timestamp()

    def headers(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class KeyOnly(StandIn):
    """The stand-in for what a timer or a window makes: its key without a value, at the place of a row.

    The key is legible: bytes and text as they are, all else as JSON. `due` is the time of the timer, or of the window's
    end with its grace.
    """

    legible: bytes
    due: int

    def key(self) -> bytes:
        return self.legible

    def value(self) -> None:
        return None


@named.register
def _(row: KeyOnly) -> str:
    at = "as time passed" if isinstance(row.place, PassedTime) else f"at record {locate(row)}"
    key = row.legible.decode(errors="backslashreplace")
    return f"what a timer or window of key {key!r}, due at {row.due}, made {at}"


@dataclass(frozen=True, slots=True)
class WithoutHeaders(StandIn):
    """The stand-in for a record whose headers can't be read: all else of it. The client would crash if asked again."""

    def key(self) -> Any:
        return self.place.key()

    def value(self) -> Any:
        return self.place.value()


class PlaceOnly:
    """The part of a row that says nothing but where it is: no key, no value, no time."""

    __slots__ = ()

    def key(self) -> None:
        return None

    def value(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return (0, 0)

    def headers(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class PassedTime(PlaceOnly):
    """The stand-in for a record where time passed without one, under this partition number."""

    number: int

    def topic(self) -> str:
        return ""

    def partition(self) -> int:
        return self.number

    def offset(self) -> int:
        return -1


@named.register
def _(row: PassedTime) -> str:
    return f"the mark of time for partition {row.number}"
