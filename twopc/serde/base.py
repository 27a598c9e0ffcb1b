"""Serdes turn the bytes of a topic into values and back: the contract of every format.

A tombstone (None) passes through every serde as None. A serde raises whatever its format raises, and names no record:
the column methods raise ColumnError with the index, from which the caller names topic, partition and offset. A serde in
a job is a description, copied to every subtask, so it must be picklable; what `open` returns stays where it was opened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twopc.column import map_column
from twopc.errors import ConfigurationError

if TYPE_CHECKING:
    from twopc.record import Headers


@dataclass(frozen=True, slots=True)
class SerdeContext:
    """The keys or the values of one topic, for which a serde works; `writing` is said by sinks."""

    topic: str
    is_key: bool
    writing: bool = False

    def __str__(self) -> str:
        return f"the {'keys' if self.is_key else 'values'} of topic {self.topic!r}"


class Serde(ABC):
    """One format. Only the two methods for a single value must be written; the column methods build on them."""

    #: Whether values are the bytes themselves, so that a column need not be touched at all.
    is_identity = False
    #: Whether it works only once it is opened for the keys or values of a topic: then no state can have it.
    must_be_opened = False

    @abstractmethod
    def deserialize(self, data: bytes | None) -> Any:
        """Return the value that these bytes stand for; None for None."""

    @abstractmethod
    def serialize(self, value: Any) -> bytes | None:
        """Return the bytes of this value; None for None."""

    def open(self, context: SerdeContext) -> Serde:
        """Return the serde that works for these keys or values, with what it needs at hand; itself if that is nothing.

        Called once for each topic wherever a source or sink is opened, and on the driver before the first record: what
        it raises there refuses the job. What one subtask changes the others may see, so a serde that holds something
        returns a new one, which the same thread closes. A column method of it that raises Unavailable can't work now,
        and finds no fault with a record: a new attempt of the job tries again.
        """
        return self

    def close(self) -> None:
        """Let go of what `open` took."""

    def deserialize_all(self, column: list[bytes | None]) -> list[Any]:
        """Return the value of each element; raise ColumnError for the first that can't be decoded."""
        return map_column(self.deserialize, column)

    def serialize_all(self, column: list[Any]) -> list[bytes | None]:
        """Return the bytes of each value; raise ColumnError for the first that can't be encoded."""
        return map_column(self.serialize, column)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class HeaderSerde(Serde):
    """A format that is in the headers too, such as one that keeps a schema's id there.

    A key is encoded before its value, which is given the headers that the key left.
    """

    @abstractmethod
    def deserialize_with(self, data: bytes | None, headers: Headers | None) -> Any:
        """Return the value that these bytes stand for, of a record with these headers."""

    @abstractmethod
    def serialize_with(self, value: Any, headers: Headers | None) -> tuple[bytes | None, Headers | None]:
        """Return the bytes of this value, and the headers that its record has then."""

    def deserialize(self, data: bytes | None) -> Any:
        return self.deserialize_with(data, None)

    def serialize(self, value: Any) -> bytes | None:
        return self.serialize_with(value, None)[0]


def checked_serde(where: str, serde: Serde) -> Serde:
    """Return what was given as a serde; raise ConfigurationError, which says where, if it is none."""
    if not isinstance(serde, Serde):
        raise ConfigurationError(f"{where} must be a serde such as Json(), not {serde!r}")
    return serde


def checked_state_serde(where: str, serde: Serde) -> Serde:
    """Return what was given as the serde of a state; raise ConfigurationError if it is none, or none of a state."""
    if checked_serde(where, serde).must_be_opened:
        raise ConfigurationError(
            f"{where} can't be {serde!r}: a state belongs to no topic, and must be readable when no registry is there: "
            "give it Avro(schema), Json() or Protobuf(message)"
        )
    return serde
