"""Avro: values by a schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from twopc.column import map_column
from twopc.errors import ConfigurationError
from twopc.serde.ahead import code_ahead
from twopc.serde.avro_binary import AvroError, Input
from twopc.serde.avro_branch import branch_of, in_branch
from twopc.serde.avro_meaning import difference
from twopc.serde.avro_schema import PreparedSchema, prepared
from twopc.serde.base import Serde


class Avro(Serde):
    """Avro's binary form without a header, read and written with one schema, given as a dict or an `.avsc` file.

    The file is read when the job is built, so subtasks need no copy of it. What doesn't fit the schema is an error:
    a field that the schema doesn't have, a missing one without a default, bytes left over after the value, and what
    would read back as something else, such as a decimal of too many digits or microseconds in `timestamp-millis`.
    """

    def __init__(self, schema: Mapping[str, Any] | str | Path) -> None:
        self.schema: dict[str, Any] = dict(schema) if isinstance(schema, Mapping) else _read_schema(Path(schema))
        try:
            self._text = json.dumps(self.schema, sort_keys=True)
            prepared(self._text)
        except Exception as error:
            origin = "the dict" if isinstance(schema, Mapping) else f"the file {schema}"
            raise ConfigurationError(f"{origin} given to Avro is not an Avro schema: {error}") from error

    def deserialize(self, data: bytes | None) -> Any:
        return read_value(prepared(self._text), data)

    def serialize(self, value: Any) -> bytes | None:
        return write_value(prepared(self._text), value)

    def deserialize_all(self, column: list[bytes | None]) -> list[Any]:
        return read_values(prepared(self._text), column)

    def serialize_all(self, column: list[Any]) -> list[bytes | None]:
        return write_values(prepared(self._text), column)

    def examples(self, count: int) -> list[Any]:
        """Return values that fit the schema, for a load: the same ones every time."""
        chance, of = Random(0), prepared(self._text).type
        return [of.example(chance, 0) for _ in range(count)]

    @staticmethod
    def in_branch(branch: str, value: Any) -> Any:
        """Return an equal value that knows its branch in a union, by the full name of the branch's type.

        What is read knows its branch where the value alone doesn't tell; what is made anew is to be told.
        """
        return in_branch(branch, value)

    @staticmethod
    def branch_of(value: Any) -> str | None:
        """Return the branch that a value knows; None for one that knows none."""
        return branch_of(value)

    def difference(self, written: Avro) -> str | None:
        """Say where what another wrote would be read as something else; None where it would not."""
        return difference(*(prepared(each._text).plain for each in (written, self)))

    def __repr__(self) -> str:
        return f"Avro({self.schema.get('name', self.schema.get('type'))})"


def _read_schema(path: Path) -> dict[str, Any]:
    try:
        schema = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"the Avro schema {path} can't be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigurationError(f"the Avro schema {path} is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise ConfigurationError(f"the Avro schema {path} must be one JSON object, but is a {type(schema).__name__}")
    return schema


def read_values(schema: PreparedSchema, column: list[bytes | None]) -> list[Any]:
    """Return the value of each element; raise ColumnError for the first that can't be read."""
    single = partial(read_value, schema)
    codec = schema.codec
    if codec is None:
        return map_column(single, column)
    return code_ahead(lambda some, start: codec.read(some, start, b""), single, column)


def write_values(schema: PreparedSchema, column: list[Any]) -> list[bytes | None]:
    """Return the bytes of each value; raise ColumnError for the first that can't be written."""
    single = partial(write_value, schema)
    codec = schema.codec
    if codec is None:
        return map_column(single, column)
    return code_ahead(lambda some, start: codec.write(some, start, b""), single, column)


def read_value(schema: PreparedSchema, data: bytes | None) -> Any:
    """Return the value of these bytes, which are nothing else; raise AvroError, which names the field."""
    return None if data is None else read_whole(schema.type.read, data)


def read_whole(read: Callable[[Input], Any], data: bytes) -> Any:
    """Return what is read of bytes; raise AvroError where that isn't all of them."""
    given = Input(data)
    value = read(given)
    if left := len(data) - given.at:
        raise AvroError(f"{left} bytes are left after the value: it was written with another schema")
    return value


def write_value(schema: PreparedSchema, value: Any) -> bytes | None:
    """Return the bytes of a value; raise AvroError, which names the field, where it doesn't fit."""
    if value is None:
        return None
    out = bytearray()
    schema.type.write(value, out)
    return bytes(out)
