"""The stored forms of a state that is more than one value of a user's serde: with its time, as a list, as a map.

    timed   time (8) | what the serde wrote
    list    stored by element, put together to look at: for each its length (4) | what the serde wrote
    map     stored by entry, put together to look at: for each length (4) | key | length (4) | value
    waiting time (8) | time until which it waits (8) | flags (1) | what the serde wrote
    version time (8) | whether there is a value from then on (1) | what the serde wrote
    records that wait  for each, oldest first: times and flags as of one (17) | length (4) | what the serde wrote
    windows for each window: start (8) | end (8) | length (4) | what the serde wrote

The flags of one that waits are whether it met another (1) and whether it has no value (2). The time is in Unix
milliseconds, NEVER where there was no time yet. A list or map without anything is not stored.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from twopc.serde import Bytes, Int, Long, Serde, String
from twopc.windows import Window

NEVER = -(2**63)
_TIME = struct.Struct(">q")
_LENGTH = struct.Struct(">I")
_WAITING = struct.Struct(">qqB")
_MET, _NO_VALUE = 1, 2
_VERSION = struct.Struct(">q?")
_ALL_WAITING = struct.Struct(">qqBI")
_WINDOW = struct.Struct(">qqI")

_DICT_KEYS = (String, Bytes, Int, Long)


class Form(Serde):
    """A serde that is made of others; `kind` names it, and `parts` are the arguments that make it again."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Serde]: ...

    @staticmethod
    @abstractmethod
    def named(**parts: str) -> str:
        """Name the form for people, by the names of its parts."""

    def __repr__(self) -> str:
        return self.named(**{name: repr(part) for name, part in self.parts.items()})


class FormOfOne(Form):
    """A form that is made of one serde."""

    def __init__(self, of: Serde) -> None:
        self.of = of

    @property
    def parts(self) -> Mapping[str, Serde]:
        return {"of": self.of}


class Timed(FormOfOne):
    """A value with the time at which it was written; to look at, it is the value."""

    kind = "timed"

    @staticmethod
    def named(**parts: str) -> str:
        return f"{parts['of']} with a ttl"

    def deserialize(self, data: bytes | None) -> Any:
        return None if data is None else self.of.deserialize(content(data))

    def serialize(self, value: Any) -> bytes | None:
        written = self.of.serialize(value)
        return None if written is None else timed(None, written)


class ListOf(FormOfOne):
    """Values one after the other, each stored at an address of its own (`twopc.state.entry_keys`)."""

    kind = "list"

    @staticmethod
    def gathered(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
        """Return the elements, of which the number and the value is given, as one."""
        return joined(value for _, value in entries)

    @staticmethod
    def named(**parts: str) -> str:
        return f"a list of {parts['of']}"

    def deserialize(self, data: bytes | None) -> list[Any] | None:
        return None if data is None else [self.of.deserialize(piece) for piece in pieces(data)]

    def serialize(self, value: Iterable[Any] | None) -> bytes | None:
        return None if value is None else joined(present(self.of, each) for each in value)


class Waiting(NamedTuple):
    """A record that waits for others of its key: since when and until when, by event time, and whether it met one."""

    at: int
    until: int
    met: bool
    value: Any


class WaitingOf(FormOfOne):
    """A value of a record that waits."""

    kind = "waiting"

    @staticmethod
    def named(**parts: str) -> str:
        return f"{parts['of']} of records that wait"

    def deserialize(self, data: bytes | None) -> Waiting | None:
        if data is None:
            return None
        at, until, flags = _WAITING.unpack_from(data)
        value = None if flags & _NO_VALUE else self.of.deserialize(data[_WAITING.size :])
        return Waiting(at, until, bool(flags & _MET), value)

    @staticmethod
    def times(data: bytes) -> tuple[int, int, bool]:
        """Return since when and until when it waits, and whether it met one."""
        at, until, flags = _WAITING.unpack_from(data)
        return at, until, bool(flags & _MET)

    def serialize(self, value: Waiting | None) -> bytes | None:
        if value is None:
            return None
        at, until, met, waits = value
        written = None if waits is None else present(self.of, waits)
        return _WAITING.pack(at, until, met * _MET | (written is None) * _NO_VALUE) + (written or b"")


class AllWaitingOf(FormOfOne):
    """All records of a key that wait, oldest first; to look at, a list of `Waiting`."""

    kind = "all waiting"

    @staticmethod
    def named(**parts: str) -> str:
        return f"{parts['of']} of all records that wait"

    def deserialize(self, data: bytes | None) -> list[Waiting] | None:
        if data is None:
            return None
        return [Waiting(at, until, met, self.of.deserialize(value)) for at, until, met, value in all_waiting(data)]

    def serialize(self, value: Iterable[Waiting] | None) -> bytes | None:
        if value is None:
            return None
        return joined_waiting((at, until, met, present(self.of, waits)) for at, until, met, waits in value)


class Version(NamedTuple):
    """The value that a row has from this event time on; None where it was deleted then."""

    at: int
    value: Any


class VersionOf(FormOfOne):
    """A value with the event time from which it holds; without one, it says that there is none from then on."""

    kind = "version"

    @staticmethod
    def named(**parts: str) -> str:
        return f"versions of {parts['of']}"

    @staticmethod
    def time(data: bytes) -> int:
        """Return the time from which it holds."""
        at: int = _VERSION.unpack_from(data)[0]
        return at

    @staticmethod
    def is_deletion(data: bytes) -> bool:
        """Whether it says that there is no value."""
        there: bool = _VERSION.unpack_from(data)[1]
        return not there

    def deserialize(self, data: bytes | None) -> Version | None:
        if data is None:
            return None
        at, there = _VERSION.unpack_from(data)
        return Version(at, self.of.deserialize(data[_VERSION.size :]) if there else None)

    def serialize(self, value: Version | None) -> bytes | None:
        if value is None:
            return None
        written = None if value.value is None else self.of.serialize(value.value)
        return _VERSION.pack(value.at, written is not None) + (written or b"")


class MapOf(Form):
    """Values by key, in the order of encoded keys, each stored at an address of its own (`twopc.state.entry_keys`).

    To look at, it is a dict where its keys are text, bytes or integers of one type; those of other serdes may be equal
    or unfit for a dict, as 1, True and [1] of JSON, so there it is a list of pairs.
    """

    kind = "map"

    @staticmethod
    def gathered(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
        """Return the entries, of which key and value are given, as one."""
        return joined(each for entry in entries for each in entry)

    def __init__(self, key: Serde, of: Serde) -> None:
        self.key, self.of = key, of

    @property
    def parts(self) -> Mapping[str, Serde]:
        return {"key": self.key, "of": self.of}

    @staticmethod
    def named(**parts: str) -> str:
        return f"a map of {parts['key']} to {parts['of']}"

    def deserialize(self, data: bytes | None) -> dict[Any, Any] | list[tuple[Any, Any]] | None:
        if data is None:
            return None
        items = [(self.key.deserialize(key), self.of.deserialize(value)) for key, value in pairs(data)]
        return dict(items) if type(self.key) in _DICT_KEYS else items

    def serialize(self, value: Mapping[Any, Any] | Iterable[tuple[Any, Any]] | None) -> bytes | None:
        if value is None:
            return None
        items = value.items() if isinstance(value, Mapping) else value
        return joined(each for key, held in items for each in (present(self.key, key), present(self.of, held)))


class WindowsOf(FormOfOne):
    """The open windows of a key, by their starts; to look at, a list of `Window`.

    An entry that ends before it starts is what is remembered of windows that are over: it is no window to look at.
    """

    kind = "windows"

    @staticmethod
    def named(**parts: str) -> str:
        return f"windows of {parts['of']}"

    def deserialize(self, data: bytes | None) -> list[Window] | None:
        if data is None:
            return None
        return [Window(start, end, self._value(value)) for start, end, value in windows(data) if start <= end]

    def serialize(self, value: Iterable[Window] | None) -> bytes | None:
        if value is None:
            return None
        return joined_windows((window.start, window.end, present(self.of, window.value)) for window in value)

    def _value(self, stored: bytes) -> Any:
        return self.of.deserialize(stored)


class SessionsOf(WindowsOf):
    """The open sessions of a key; the end of each is the time of its last record."""

    kind = "sessions"

    @staticmethod
    def named(**parts: str) -> str:
        return f"sessions of {parts['of']}"


class SlidingOf(WindowsOf):
    """The open sliding windows of a key, each value with the time of its last record."""

    kind = "sliding windows"

    @staticmethod
    def named(**parts: str) -> str:
        return f"sliding windows of {parts['of']}"

    def serialize(self, value: Iterable[Window] | None) -> bytes | None:
        raise NotImplementedError("a window doesn't say when its last record was")

    def _value(self, stored: bytes) -> Any:
        return self.of.deserialize(content(stored))


FORMS: dict[str, type[Form]] = {
    form.kind: form
    for form in (Timed, ListOf, MapOf, WindowsOf, SessionsOf, SlidingOf, WaitingOf, AllWaitingOf, VersionOf)
}

BY_ENTRY: dict[str, type[ListOf] | type[MapOf]] = {form.kind: form for form in (ListOf, MapOf)}
"""Those of which each element or entry is stored at an address of its own."""


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


def joined(encoded: Iterable[bytes]) -> bytes:
    """Return values, each encoded, as one."""
    return b"".join([_LENGTH.pack(len(each)) + each for each in encoded])


def pieces(data: bytes) -> Iterator[bytes]:
    """Yield what was joined; raise ValueError for anything else."""
    at = 0
    while at < len(data):
        start = at + _LENGTH.size
        if start > len(data) or (at := start + _LENGTH.unpack_from(data, at)[0]) > len(data):
            raise ValueError("it is shorter than it says")
        yield data[start:at]


def pairs(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values of a map."""
    every = pieces(data)
    return zip(every, every, strict=True)


def joined_windows(every: Iterable[tuple[int, int, bytes]]) -> bytes:
    """Return windows, each with its start, end and value, as one."""
    return b"".join([_WINDOW.pack(start, end, len(value)) + value for start, end, value in every])


def windows(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield start, end and value of each window; raise ValueError for what is none."""
    for (start, end), value in _headed(_WINDOW, data):
        yield start, end, value


def joined_waiting(every: Iterable[tuple[int, int, bool, bytes]]) -> bytes:
    """Return records that wait, each with its times, whether it met another, and its value, as one."""
    pack = _ALL_WAITING.pack
    return b"".join([pack(at, until, met * _MET, len(value)) + value for at, until, met, value in every])


def all_waiting(data: bytes) -> Iterator[tuple[int, int, bool, bytes]]:
    """Yield times, whether it met another, and the value of each record; raise ValueError for what is none."""
    for (at, until, flags), value in _headed(_ALL_WAITING, data):
        yield at, until, bool(flags & _MET), value


def _headed(head: struct.Struct, data: bytes) -> Iterator[tuple[tuple[int, ...], bytes]]:
    """Yield values, each with the numbers that stand before its length; raise ValueError for anything else."""
    at = 0
    while at < len(data):
        behind = at + head.size
        if behind > len(data):
            raise ValueError("it is shorter than it says")
        *numbers, length = head.unpack_from(data, at)
        at = behind + length
        if at > len(data):
            raise ValueError("it is shorter than it says")
        yield tuple(numbers), data[behind:at]


def present(serde: Serde, value: Any) -> bytes:
    """Return an element, encoded; raise ValueError for one that is nothing."""
    encoded = serde.serialize(value)
    if encoded is None:
        raise ValueError("None can't be in a list or map")
    return encoded
