"""JSON Schema with a registry. This module is the only door to jsonschema and referencing.

A schema that names no draft is one of draft 7, as Confluent's own serdes have it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from twopc.errors import ConfigurationError
from twopc.kafka.registry.client import RegistryClient
from twopc.kafka.registry.format import Format, Read, Write
from twopc.kafka.registry.schema import Schema, SchemaReference
from twopc.serde import Json, Serde

_JSON = Json()


@dataclass(frozen=True)
class JsonFormat(Format):
    """`text` is the schema as JSON; empty for none."""

    text: str
    references: tuple[SchemaReference, ...]

    type: ClassVar[str] = "JSON"

    @classmethod
    def of(cls, schema: Mapping[str, Any] | None, references: Sequence[SchemaReference]) -> JsonFormat:
        """Raise ConfigurationError for what is no schema."""
        text = "" if schema is None else json.dumps(schema)
        if text:
            try:
                _validator_class(schema).check_schema(schema)
            except _jsonschema().SchemaError as error:
                raise ConfigurationError(
                    f"what is given to SchemaRegistry.json is not a JSON Schema: {error.message} at {error.json_path}"
                ) from error
        return cls(text, tuple(references))

    @property
    def name(self) -> str:
        return str(json.loads(self.text).get("title", "")) if self.text else ""

    def schema(self, client: RegistryClient) -> Schema | None:
        return Schema(self.type, self.text, self.references) if self.text else None

    def unregistered(self) -> Serde:
        return _JSON

    def writer(self, client: RegistryClient) -> Write:
        validator = self._own(client)

        def write(value: Any) -> bytes:
            data = _JSON.serialize(value)
            assert data is not None, "a tombstone is written as one before this"
            # What is written counts, which may be more, such as a date as text, or less, such as NaN as null.
            _validate(validator, _JSON.deserialize(data))
            return data

        return Write(write)

    def reader(self, client: RegistryClient, written: Schema) -> Read:
        validator = self._own(client) if self.text else _validator(client, written)

        def read(data: bytes) -> Any:
            value = _JSON.deserialize(data)
            _validate(validator, value)
            return value

        return Read(read)

    def __str__(self) -> str:
        return f"json({self.name})"

    def _own(self, client: RegistryClient) -> Any:
        return _validator(client, Schema(self.type, self.text, self.references))


def _validate(validator: Any, value: Any) -> None:
    """Raise ValueError for the error that says most, with its place in the value."""
    error = _jsonschema().exceptions.best_match(validator.iter_errors(value))
    if error is not None:
        raise ValueError(f"{error.json_path}: {error.message}")


def _validator(client: RegistryClient, schema: Schema) -> Any:
    """Return what validates by a schema, and by those that it refers to."""
    from referencing import Registry
    from referencing.jsonschema import DRAFT7

    known: dict[str, Any] = {}
    _add_schemas(client, schema.references, known)
    resources = [(name, DRAFT7.detect(each).create_resource(each)) for name, each in known.items()]
    text = json.loads(schema.text)
    return _validator_class(text)(text, registry=Registry().with_resources(resources))


def _add_schemas(client: RegistryClient, references: Sequence[SchemaReference], known: dict[str, Any]) -> None:
    for reference in references:
        if reference.name not in known:
            named = client.version(reference)
            known[reference.name] = json.loads(named.text)
            _add_schemas(client, named.references, known)


def _validator_class(schema: Any) -> Any:
    return _jsonschema().validators.validator_for(schema, default=_jsonschema().Draft7Validator)


def _jsonschema() -> Any:
    try:
        import jsonschema
    except ImportError as error:
        raise ConfigurationError(
            "SchemaRegistry.json needs a package that is not installed (jsonschema): install twopc-streams[registry]"
        ) from error
    return jsonschema
