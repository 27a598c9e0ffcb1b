"""Avro. This module is the only door to fastavro."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from functools import lru_cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import to_parsing_canonical_form
from fastavro.utils import generate_many

from twopc.column import map_column
from twopc.errors import ConfigurationError
from twopc.serde.base import Serde


class Avro(Serde):
    """Avro's binary form without a header, read and written with one schema, given as a dict or an `.avsc` file.

    The file is read when the job is built, so subtasks need no copy of it. What doesn't fit the schema is an error:
    a field that the schema doesn't have, a missing one without a default, and bytes left over after the value.
    """

    def __init__(self, schema: Mapping[str, Any] | str | Path) -> None:
        self.schema: dict[str, Any] = dict(schema) if isinstance(schema, Mapping) else _read_schema(Path(schema))
        try:
            self._text = json.dumps(self.schema, sort_keys=True)
            _parsed(self._text)
        except Exception as error:
            origin = "the dict" if isinstance(schema, Mapping) else f"the file {schema}"
            raise ConfigurationError(f"{origin} given to Avro is not an Avro schema: {error}") from error

    def deserialize(self, data: bytes | None) -> Any:
        return _read_value(_parsed(self._text), data)

    def serialize(self, value: Any) -> bytes | None:
        return _write_value(_parsed(self._text), value)

    def deserialize_all(self, column: list[bytes | None]) -> list[Any]:
        return map_column(partial(_read_value, _parsed(self._text)), column)

    def serialize_all(self, column: list[Any]) -> list[bytes | None]:
        return map_column(partial(_write_value, _parsed(self._text)), column)

    def examples(self, count: int) -> list[Any]:
        """Return values that fit the schema, for a load: the same ones every time."""
        before = random.getstate()
        random.seed(0)
        try:
            return list(generate_many(self.schema, count))
        finally:
            random.setstate(before)

    def writes_as(self, other: Avro) -> bool:
        """Say whether a value has the same bytes under both: one Parsing Canonical Form (Avro's specification)."""
        mine, others = (str(to_parsing_canonical_form(_parsed(each._text))) for each in (self, other))
        return mine == others

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


def _read_value(parsed: Any, data: bytes | None) -> Any:
    if data is None:
        return None
    buffer = BytesIO(data)
    value = schemaless_reader(buffer, parsed, None)
    if left := len(data) - buffer.tell():
        raise ValueError(f"{left} bytes are left after the value: it was written with another schema")
    return value


def _write_value(parsed: Any, value: Any) -> bytes | None:
    if value is None:
        return None
    buffer = BytesIO()
    schemaless_writer(buffer, parsed, value, strict_allow_default=True)
    return buffer.getvalue()


@lru_cache(maxsize=256)
def _parsed(text: str) -> Any:
    """Return fastavro's own form of a schema, made once per process and schema; it is neither pickled nor changed."""
    return parse_schema(json.loads(text))
