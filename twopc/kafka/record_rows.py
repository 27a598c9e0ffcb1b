"""A record of a topic as a line: JSON, or text with tabs."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

NULL = "<null>"
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def row_of(message: Any) -> dict[str, Any]:
    """Return all of a record, ready for JSON: what is not UTF-8 has a name that says that it is base64."""
    kind, stamp = message.timestamp()
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": stamp if kind else None,
        **named("key", message.key()),
        **named("value", message.value()),
        "headers": [{"name": name, **named("value", value)} for name, value in message.headers() or ()],
    }


def text_of(message: Any) -> str:
    """Return place, key, value and each header on one line."""
    place = f"{message.topic()}[{message.partition()}]@{message.offset()}"
    headers = (f"{name.translate(_ESCAPES)}={shown(value)}" for name, value in message.headers() or ())
    return "\t".join((place, shown(message.key()), shown(message.value()), *headers))


def named(name: str, data: bytes | None) -> dict[str, str | None]:
    """Return bytes under a name, ready for JSON."""
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(data or b"").decode()}


def shown(data: bytes | None) -> str:
    """Return bytes as they are shown on a line."""
    if data is None:
        return NULL
    escaped = data.decode(errors="surrogateescape").translate(_ESCAPES)
    return escaped.encode(errors="surrogateescape").decode(errors="backslashreplace")
