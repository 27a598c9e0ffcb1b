"""An entry as plain values: what is exported, and printed as JSON.

A key that is text, or bytes that are UTF-8, is `key`, other bytes are `key_base64`, and what else is JSON `key_json`.
A value that could be decoded is `value`, any other `value_base64`. Of each a row has exactly one, so that none can be
taken for another.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

from twopc.errors import UserCodeError
from twopc.inspect.entry import StateEntry

Row = dict[str, Any]


def row_of(entry: StateEntry) -> Row:
    """Return all of an entry, ready for JSON; `problem` says why a value could not be decoded, where it should be."""
    return {
        "operator": entry.state.operator,
        "state": entry.state.name,
        "subtask": entry.subtask,
        "partition": entry.partition,
        **_key(entry),
        **value_of(entry),
    }


def value_of(entry: StateEntry) -> Row:
    """Return the value alone, as it is in the row."""
    try:
        value = entry.value
    except UserCodeError as error:
        return {"value_base64": _base64(entry.raw), "problem": str(error)}
    return {"value_base64": _base64(value)} if isinstance(value, bytes) else {"value": plain(value)}


def plain(value: Any) -> Any:
    """Return what JSON can say of a decoded value: bytes in base64, times in ISO form, what else there is as text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return _base64(value)
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)


def _key(entry: StateEntry) -> Row:
    if entry.partition is None:
        return {"key": None}
    text, key = entry.key_text, entry.key
    if text is not None:
        return {"key": text}
    return {"key_base64": _base64(key)} if isinstance(key, bytes) else {"key_json": key}


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
