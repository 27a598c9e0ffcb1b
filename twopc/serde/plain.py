"""Bytes, text and JSON. This module is the data path's only door to orjson."""

from __future__ import annotations

from typing import Any

import orjson

from twopc.serde.base import Serde


class Bytes(Serde):
    """Bytes as they are: the default of every key and value."""

    is_identity = True

    def deserialize(self, data: bytes | None) -> bytes | None:
        return data

    def serialize(self, value: Any) -> bytes | None:
        if value is None or isinstance(value, bytes):
            return value
        raise TypeError(f"the serde is Bytes, so a value must be bytes or None, not {type(value).__name__}")

    def deserialize_all(self, column: list[bytes | None]) -> list[Any]:
        return column


class String(Serde):
    """Text in UTF-8."""

    def deserialize(self, data: bytes | None) -> str | None:
        return None if data is None else data.decode()

    def serialize(self, value: Any) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, str):
            raise TypeError(f"the serde is String, so a value must be str or None, not {type(value).__name__}")
        return value.encode()


class Json(Serde):
    """JSON in UTF-8.

    The text `null` is read as None, and None is written as a tombstone. Encoding is strict where JSON is: keys of
    objects must be strings, integers must fit in 64 bits. NaN and the infinities become null.
    """

    def deserialize(self, data: bytes | None) -> Any:
        return None if data is None else orjson.loads(data)

    def serialize(self, value: Any) -> bytes | None:
        return None if value is None else orjson.dumps(value)

    @staticmethod
    def canonical(value: Any) -> bytes:
        """Return the one text of a value, whatever the order in which its objects were built."""
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
