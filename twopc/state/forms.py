"""How a state is stored that is more than one value of a user's serde: with its time, as a list, as a map.

    timed   time (8) | what the serde wrote
    list    for each element: its length (4) | what the serde wrote
    map     for each entry: length (4) | key | length (4) | value

The time is in Unix milliseconds, NEVER where there was no time yet. A list or map without anything is not stored.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from twopc.serde import Serde

NEVER = -(2**63)
_TIME = struct.Struct(">q")
_LENGTH = struct.Struct(">I")


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


class Timed(Form):
    """A value with the time at which it was written; to look at, it is the value."""

    kind = "timed"

    def __init__(self, of: Serde) -> None:
        self.of = of

    @property
    def parts(self) -> Mapping[str, Serde]:
        return {"of": self.of}

    @staticmethod
    def named(**parts: str) -> str:
        return f"{parts['of']} with a ttl"

    def deserialize(self, data: bytes | None) -> Any:
        return None if data is None else self.of.deserialize(content(data))

    def serialize(self, value: Any) -> bytes | None:
        written = self.of.serialize(value)
        return None if written is None else timed(None, written)


class ListOf(Form):
    """Values one after the other."""

    kind = "list"

    def __init__(self, of: Serde) -> None:
        self.of = of

    @property
    def parts(self) -> Mapping[str, Serde]:
        return {"of": self.of}

    @staticmethod
    def named(**parts: str) -> str:
        return f"a list of {parts['of']}"

    def deserialize(self, data: bytes | None) -> list[Any] | None:
        return None if data is None else [self.of.deserialize(each) for each in pieces(data)]

    def serialize(self, value: Iterable[Any] | None) -> bytes | None:
        return None if value is None else joined(present(self.of, each) for each in value)


class MapOf(Form):
    """Values by key, in the order in which the keys first came."""

    kind = "map"

    def __init__(self, key: Serde, of: Serde) -> None:
        self.key, self.of = key, of

    @property
    def parts(self) -> Mapping[str, Serde]:
        return {"key": self.key, "of": self.of}

    @staticmethod
    def named(**parts: str) -> str:
        return f"a map of {parts['key']} to {parts['of']}"

    def deserialize(self, data: bytes | None) -> dict[Any, Any] | None:
        if data is None:
            return None
        return {self.key.deserialize(key): self.of.deserialize(value) for key, value in pairs(data)}

    def serialize(self, value: Mapping[Any, Any] | None) -> bytes | None:
        if value is None:
            return None
        return joined(each for key, held in value.items() for each in (present(self.key, key), present(self.of, held)))


FORMS: dict[str, type[Form]] = {form.kind: form for form in (Timed, ListOf, MapOf)}


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


def present(serde: Serde, value: Any) -> bytes:
    """Return an element, encoded; raise ValueError for one that is nothing."""
    encoded = serde.serialize(value)
    if encoded is None:
        raise ValueError("None can't be in a list or map")
    return encoded
