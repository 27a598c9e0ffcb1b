"""Avro: values by a schema."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from fastavro import schemaless_reader, schemaless_writer
from fastavro.schema import to_parsing_canonical_form
from fastavro.utils import generate_many
from fastavro.validation import ValidationError, validate

from twopc.column import map_column
from twopc.errors import ConfigurationError
from twopc.serde.ahead import code_ahead
from twopc.serde.avro_logical import Refused, generable
from twopc.serde.avro_schema import Check, PreparedSchema, changed, prepared
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
        before = random.getstate()
        random.seed(0)
        try:
            return list(generate_many(changed(self.schema, generable), count))
        finally:
            random.setstate(before)

    def writes_as(self, other: Avro) -> bool:
        """Say whether a value has the same bytes under both: one Parsing Canonical Form (Avro's specification)."""
        mine, others = (str(to_parsing_canonical_form(prepared(each._text).plain)) for each in (self, other))
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
    """Return the value of these bytes, which are nothing else."""
    return None if data is None else _read(data, schema, None, schema.check)


def read_resolved(written: PreparedSchema, schema: PreparedSchema, data: bytes) -> Any:
    """Return the value of these bytes, written with one schema, as another has it: Avro's schema resolution."""
    return _read(data, written, schema.strict, schema.check)


def _read(data: bytes, written: PreparedSchema, into: Any, check: Check | None) -> Any:
    buffer = BytesIO(data)
    value = schemaless_reader(buffer, written.strict, into)
    if left := len(data) - buffer.tell():
        raise ValueError(f"{left} bytes are left after the value: it was written with another schema")
    if check is not None:
        check(value)
    return value


def write_value(schema: PreparedSchema, value: Any) -> bytes | None:
    """Return the bytes of a value; raise an error that names the field where it doesn't fit."""
    if value is None:
        return None
    if schema.check is not None:
        schema.check(value)
    buffer = BytesIO()
    try:
        schemaless_writer(buffer, schema.strict, value, strict_allow_default=True)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise _named(schema, value, error) from error
    return buffer.getvalue()


def _named(schema: PreparedSchema, value: Any, error: Exception) -> Exception:
    """Return an error that says which field doesn't fit, where fastavro's own doesn't."""
    try:
        validate(value, schema.strict)
    except ValidationError as refused:
        last = refused.errors[-1]
        kind = last.schema if isinstance(last.schema, str) else last.schema.get("type", last.schema)
        if isinstance(last.datum, Refused):
            said = f"is {last.datum!r}"
        elif last.datum is None:
            said = f"is None or missing, and must be {kind}"
        else:
            said = f"is {last.datum!r}, which is no {kind}"
        return ValueError(f"{last.field or 'the value'} {said}")
    except Exception:  # noqa: BLE001 - whatever it meets, the first error stands
        return error
    return error
