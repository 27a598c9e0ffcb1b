"""An Avro schema made ready: its type, which reads and writes values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from fastavro import parse_schema

from twopc.errors import ConfigurationError
from twopc.serde.avro_codec import codec_of
from twopc.serde.avro_logical import logical
from twopc.serde.avro_named import Enum, Field, Fixed, Record
from twopc.serde.avro_names import NAMED
from twopc.serde.avro_nested import Array, Map, Union
from twopc.serde.avro_type import Type, primitive

if TYPE_CHECKING:
    from twopc.serde._avro import Codec


class PreparedSchema(NamedTuple):
    """`plain` is as it was given, with full names; without `codec` values go by `type` alone."""

    plain: Any
    type: Type
    codec: Codec | None


@lru_cache(maxsize=256)
def prepared(text: str) -> PreparedSchema:
    """Return the schema of this text ready to be used, made once per process; it is neither pickled nor changed."""
    plain = parse_schema(json.loads(text))
    of = _Types().of(plain, "")
    return PreparedSchema(plain, of, codec_of(of))


class _Types:
    """Makes the type of each part of a schema that has full names."""

    def __init__(self) -> None:
        self._definitions: dict[str, Mapping[str, Any]] = {}
        self._fields: dict[str, list[Field]] = {}

    def of(self, schema: Any, field: str) -> Type:
        if isinstance(schema, list):
            return self._of_union(schema, field)
        if isinstance(schema, str):
            made = primitive(schema, field)
            return self._of_named(self._definitions[schema], field) if made is None else made
        kind = schema["type"]
        if kind in NAMED:
            self._definitions[schema["name"]] = schema
            return self._of_named(schema, field)
        match kind:
            case "array":
                return Array(self.of(schema["items"], field), field)
            case "map":
                return Map(self.of(schema["values"], field), field)
            case _:
                return logical(self.of(kind, field), schema, field)

    def _of_named(self, definition: Mapping[str, Any], field: str) -> Type:
        match definition["type"]:
            case "enum":
                return Enum(definition, field)
            case "fixed":
                return logical(Fixed(definition, field), definition, field)
            case _:
                return Record(definition, field, self._fields_of(definition))

    def _fields_of(self, definition: Mapping[str, Any]) -> list[Field]:
        name = definition["name"]
        if name not in self._fields:
            fields = self._fields[name] = []
            short = name.rpartition(".")[2]
            for each in definition["fields"]:
                fields.append(Field(each, self.of(each["type"], f"{short}.{each['name']}")))
        return self._fields[name]

    def _of_union(self, branches: list[Any], field: str) -> Type:
        types = [self.of(branch, field) for branch in branches]
        names = [kind.name for kind in types]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigurationError(f"the union {field or 'of the schema'} has two branches that are {twice[0]}")
        return Union(types, field)
