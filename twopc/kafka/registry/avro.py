"""Avro with a registry: written by one schema, read from each value's own into that one, or as it was written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from twopc.errors import ConfigurationError
from twopc.kafka.registry.client import RegistryClient
from twopc.kafka.registry.format import Format, Read, Write
from twopc.kafka.registry.schema import Schema, SchemaReference
from twopc.serde import Avro, Serde
from twopc.serde.avro import read_value, read_whole, write_value
from twopc.serde.avro_binary import AvroError
from twopc.serde.avro_names import full_name, inlined
from twopc.serde.avro_resolution import why_unreadable
from twopc.serde.avro_resolving import resolved
from twopc.serde.avro_schema import PreparedSchema, prepared


@dataclass(frozen=True)
class AvroFormat(Format):
    """`text` is the schema as JSON, with types in it that are those of the references; empty for none."""

    text: str
    references: tuple[SchemaReference, ...]

    type: ClassVar[str] = "AVRO"

    @classmethod
    def of(cls, schema: Mapping[str, Any] | None, references: Sequence[SchemaReference]) -> AvroFormat:
        """Raise ConfigurationError for what is no schema, as far as that can be told without its references."""
        text = "" if schema is None else json.dumps(schema)
        if text and not references:
            try:
                prepared(text)
            except Exception as error:
                raise ConfigurationError(
                    f"what is given to SchemaRegistry.avro is not an Avro schema: {error}"
                ) from error
        return cls(text, tuple(references))

    @property
    def name(self) -> str:
        return full_name(json.loads(self.text)) if self.text else ""

    def schema(self, client: RegistryClient) -> Schema | None:
        return Schema(self.type, self.text, self.references) if self.text else None

    def unregistered(self) -> Serde | None:
        return Avro(json.loads(self.text)) if self.text and not self.references else None

    def writer(self, client: RegistryClient) -> Write:
        own = self._own(client)
        return Write(partial(_written, own), None if own.codec is None else own.codec.write)

    def reader(self, client: RegistryClient, written: Schema) -> Read:
        writers = _prepared(client, written)
        own = self._own(client) if self.text else writers
        if own.plain == writers.plain:
            return Read(partial(read_value, own), None if own.codec is None else own.codec.read)
        if (why := why_unreadable(writers.plain, own.plain)) is not None:
            raise ValueError(f"can't be read as {self}: {why}")
        try:
            return Read(partial(read_whole, resolved(writers.type, own.type)))
        except AvroError as error:
            raise ValueError(f"can't be read as {self}: {error}") from error

    def __str__(self) -> str:
        return f"avro({self.name})"

    def _own(self, client: RegistryClient) -> PreparedSchema:
        try:
            return _prepared(client, Schema(self.type, self.text, self.references))
        except ValueError as error:
            raise ConfigurationError(f"the schema {self.name!r} {error}") from error


def _written(schema: PreparedSchema, value: Any) -> bytes:
    data = write_value(schema, value)
    assert data is not None, "a tombstone is written as one before this"
    return data


def _prepared(client: RegistryClient, schema: Schema) -> PreparedSchema:
    """Return a schema with the types of its references in it; raise ValueError where that makes no schema."""
    types: dict[str, Any] = {}
    _add_types(client, schema.references, types)
    try:
        return prepared(json.dumps(inlined(json.loads(schema.text), types), sort_keys=True))
    except ConfigurationError:
        raise
    except Exception as error:
        raise ValueError(f"is no Avro schema here: {type(error).__name__}: {error}") from error


def _add_types(client: RegistryClient, references: Sequence[SchemaReference], types: dict[str, Any]) -> None:
    for reference in references:
        if reference.name not in types:
            named = client.version(reference)
            types[reference.name] = json.loads(named.text)
            _add_types(client, named.references, types)
