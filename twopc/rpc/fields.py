"""Values in messages of protobuf whose fields have the names of theirs: the one mapping, for all of them.

A field that may be None has presence on the wire, and is absent then. One whose name ends with `_json` holds a value as
JSON. What can't be decoded raises ProtocolViolation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from google.protobuf.message import Message

from twopc import events
from twopc.errors import ConfigurationError, ProtocolViolation
from twopc.protocol.canonical import canonical
from twopc.protocol.codec import Mismatch, Newer, from_json, tag_of, to_json

T = TypeVar("T")
M = TypeVar("M", bound=Message)

_AS_JSON = "_json"
"""How the name of a field ends that holds the JSON of a value."""


def encode(value: object, message: type[M]) -> M:
    """Return the message of that type which holds a dataclass."""
    return message(**_to_wire(to_json(value), message.DESCRIPTOR))


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
    """Return what `encode_value` was given; raise as `decode_one`."""
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
    """Return the event that this JSON holds; raise as `decode_one`."""
    return cast(events.CoordinatorEvent, decode_one(events.CoordinatorEvent, data, "an event"))


def field_of(kind: Any) -> str:
    """Return the field of a message that holds one of several kinds."""
    return tag_of(kind).replace("-", "_")


def _to_wire(body: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    """Return what the fields of a message of this kind hold of a dataclass in JSON."""
    values: dict[str, Any] = {}
    for field in kind.fields:
        value = body[field.name.removesuffix(_AS_JSON)]
        if field.name.endswith(_AS_JSON):
            value = b"" if value is None else canonical(value)
        elif field.message_type is not None and value is not None:
            inner = field.message_type
            value = [_to_wire(each, inner) for each in value] if field.is_repeated else _to_wire(value, inner)
        values[field.name] = value
    return values


def _body(wire: Message) -> dict[str, Any]:
    return dict(_part(wire, field) for field in wire.DESCRIPTOR.fields)


def _part(wire: Message, field: Any) -> tuple[str, Any]:
    if field.has_presence and not wire.HasField(field.name):
        return field.name, None
    value = getattr(wire, field.name)
    if not field.name.endswith(_AS_JSON):
        return field.name, _value(value)
    try:
        return field.name.removesuffix(_AS_JSON), json.loads(value) if value else None
    except (ValueError, RecursionError) as error:
        raise ProtocolViolation(f"the other side sent {field.name} that can't be read: {error}") from error


def _value(value: Any) -> Any:
    if isinstance(value, Message):
        return _body(value)
    return value if isinstance(value, str | int | float) else [_value(each) for each in value]
