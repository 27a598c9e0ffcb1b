"""The key of a record again, from its form in the state and what that leaves out: its type, and the order of fields.

    bytes            nothing
    text             TEXT
    anything else    its JSON, in which what JSON has no type for stands in an object of one field: the type's name

So what is made for a key later, by a timer or a window, has the key of the records, and its bytes. Pure.
"""

from __future__ import annotations

import json
from datetime import date, datetime, time
from typing import Any
from uuid import UUID

from twopc.state.key_form import key_of

TEXT = b"t"

_PLAIN = (str, int, float, bool, type(None))
_BY_TEXT: dict[str, type[date | time | UUID]] = {kind.__name__: kind for kind in (date, datetime, time)} | {
    "UUID": UUID
}


def left_out(key: Any) -> bytes:
    """Return what the form of a key leaves out; raise TypeError for a key that would come back as another."""
    if type(key) is bytes:
        return b""
    return TEXT if type(key) is str else json.dumps(_described(key), separators=(",", ":")).encode()


def whole_key(form: bytes, left: bytes) -> Any:
    """Return the key, as it was."""
    if not left:
        return key_of(form)
    return form.decode() if left == TEXT else _of(json.loads(left))


def _described(value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is list:
        return [_described(each) for each in value]
    if kind is tuple:
        return {"tuple": [_described(each) for each in value]}
    if kind is dict:
        return {"dict": {name: _described(each) for name, each in value.items()}}
    if _BY_TEXT.get(kind.__name__) is kind:
        return {kind.__name__: str(value) if kind is UUID else value.isoformat()}
    raise TypeError(
        f"a timer or window of key {value!r} would find another one: keys of it are bytes, text, or of the types of "
        f"JSON, dates, times and UUIDs, not {kind.__name__}"
    )


def _of(described: Any) -> Any:
    if isinstance(described, list):
        return [_of(each) for each in described]
    if not isinstance(described, dict):
        return described
    ((kind, held),) = described.items()
    if kind == "dict":
        return {name: _of(each) for name, each in held.items()}
    if kind == "tuple":
        return tuple(map(_of, held))
    made = _BY_TEXT[kind]
    return UUID(held) if issubclass(made, UUID) else made.fromisoformat(held)
