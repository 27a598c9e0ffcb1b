"""Values in messages of protobuf whose fields have the names of theirs: the one mapping, for all of them.

A field that may be None has presence on the wire, and is absent then. What can't be decoded raises ProtocolViolation.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar, cast

from google.protobuf.message import Message

from twopc import events
from twopc.errors import ConfigurationError, ProtocolViolation
from twopc.protocol.canonical import canonical
from twopc.protocol.codec import Mismatch, Newer, from_json, tag_of, to_json

T = TypeVar("T")
M = TypeVar("M", bound=Message)


def encode(value: object, message: type[M]) -> M:
    """Return the message of that type which holds a dataclass."""
    return message(**to_json(value))


def decode(kind: type[T], wire: Message) -> T:
    """Return the dataclass that a message holds; raise ProtocolViolation."""
    try:
        return from_json(kind, _body(wire))
    except Mismatch as error:
        raise ProtocolViolation(f"the other side sent a {kind.__name__} that can't be read: {error}") from error


def encode_value(value: object | None) -> bytes:
    """Return the JSON that a field of bytes holds; nothing becomes no bytes."""
    return b"" if value is None else canonical(to_json(value))


def decode_value(kind: type[T], data: bytes) -> T | None:
    """Return what `encode_value` was given; raise ProtocolViolation."""
    if not data:
        return None
    return cast(T, decode_one(kind, data, f"a {kind.__name__}"))


def encode_one(value: object, kinds: Any) -> bytes:
    """Return the JSON of a value of one of several kinds."""
    return canonical(to_json(value, kinds))


def decode_one(kinds: Any, data: bytes, what: str) -> Any:
    """Return what `encode_one` was given, `what` for people.

    Raises ConfigurationError where there is something in it that only a newer version knows, else ProtocolViolation.
    """
    try:
        return from_json(kinds, json.loads(data))
    except Newer as error:
        raise ConfigurationError(
            f"the other side sent {what} that this version of twopc does not know: run the same version on both sides. "
            f"It {error}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ProtocolViolation(f"the other side sent {what} that can't be read: {error}") from error


def encode_event(event: events.CoordinatorEvent) -> bytes:
    """Return the JSON of an event."""
    return canonical(to_json(event, events.CoordinatorEvent))


def decode_event(data: bytes) -> events.CoordinatorEvent:
    """Return the event that this JSON holds; raise ProtocolViolation."""
    return cast(events.CoordinatorEvent, decode_one(events.CoordinatorEvent, data, "an event"))


def field_of(kind: Any) -> str:
    """Return the field of a message that holds one of several kinds."""
    return tag_of(kind).replace("-", "_")


def _body(wire: Message) -> dict[str, Any]:
    return {
        field.name: None if field.has_presence and not wire.HasField(field.name) else _value(getattr(wire, field.name))
        for field in wire.DESCRIPTOR.fields
    }


def _value(value: Any) -> Any:
    if isinstance(value, Message):
        return _body(value)
    return value if isinstance(value, str | int | float) else [_value(each) for each in value]
