"""Bytes, text and JSON. This module is the data path's only door to orjson."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from twopc.column import ColumnError, extend_from, map_column
from twopc.serde.avro_branch import plain
from twopc.serde.base import Serde
from twopc.serde.json_integers import may_have_beyond, refuse_beyond


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


BYTES: Serde = Bytes()


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
    objects must be strings, integers must fit in 64 bits, also when they are read. NaN and the infinities become null.

    A column goes to orjson with nothing between; in a class that is derived from this, by its own methods for one.
    """

    def deserialize(self, data: bytes | None) -> Any:
        if data is None:
            return None
        value = orjson.loads(data)
        refuse_beyond(data)
        return value

    def serialize(self, value: Any) -> bytes | None:
        # orjson leaves each text in a buffer of 4 kB: many kept at once cost a page fault each, and the memory.
        return None if value is None else b"%b" % orjson.dumps(value, plain)

    def deserialize_all(self, column: list[bytes | None]) -> list[Any]:
        if type(self) is not Json:
            return super().deserialize_all(column)
        if may_have_beyond(column):
            return map_column(self.deserialize, column)
        values: list[Any] = []
        # Nothing of ours for a record: orjson is asked for a tombstone too, and refuses it.
        rest: Iterator[Any] = iter(column)
        while (cause := extend_from(values, map(orjson.loads, rest), rest)) is not None:
            if column[len(values)] is not None:
                raise ColumnError(len(values), cause, values) from cause
            values.append(None)
        return values

    def serialize_all(self, column: list[Any]) -> list[bytes | None]:
        if type(self) is not Json:
            return super().serialize_all(column)
        texts: list[bytes | None] = []
        rest, dumps = iter(column), orjson.dumps
        cause = extend_from(texts, (None if value is None else b"%b" % dumps(value, plain) for value in rest), rest)
        if cause is not None:
            raise ColumnError(len(texts), cause, texts) from cause
        return texts

    @staticmethod
    def canonical(value: Any) -> bytes:
        """Return the one text of a value, whatever the order in which its objects were built."""
        return orjson.dumps(value, plain, option=orjson.OPT_SORT_KEYS)
