"""The form in which a key addresses its state: no two keys have the same, but for text and its bytes. Pure.

    bytes, text                  as they are, text in UTF-8: text and its bytes are one key, as they are in Kafka
    anything else                MARK | canonical JSON
    bytes that begin with MARK   MARK | the bytes

MARK is in no UTF-8 and begins no JSON, so what follows it says which of the two it is.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from twopc.serde import Json

MARK = b"\xff"


def key_bytes(key: Any) -> bytes:
    """Return the form of a key; raise TypeError or ValueError for one that JSON has no text of its own for."""
    if isinstance(key, bytes):
        return MARK + key if key.startswith(MARK) else key
    if isinstance(key, str):
        return key.encode()
    text = Json.canonical(key)
    if b"null" in text and (text == b"null" or _holds_infinite(key)):
        raise ValueError(f"{key!r} can't be a key: JSON writes all or part of it as null, as others too")
    return MARK + text


def _holds_infinite(key: Any) -> bool:
    match key:
        case float():
            return not isfinite(key)
        case dict():
            return any(map(_holds_infinite, key.values()))
        case list() | tuple():
            return any(map(_holds_infinite, key))
        case _:
            return False


def need_no_mark(keys: list[bytes]) -> bool:
    """Whether these keys, of which there is one, are their own forms."""
    return max(keys) < MARK


def key_of(form: bytes) -> Any:
    """Return the key: bytes, as which text comes back too, or else a value of JSON; what is no form is bytes."""
    if not form.startswith(MARK):
        return form
    if form.startswith(MARK * 2):
        return form[1:]
    try:
        return json.loads(form[1:])
    except ValueError:
        return form


def legible(form: bytes) -> bytes:
    """Return the form as people read it: bytes and text as they are, all else as JSON."""
    return form.removeprefix(MARK)
