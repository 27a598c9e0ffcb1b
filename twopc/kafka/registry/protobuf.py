"""Protobuf with a registry: messages of a class, whose file, and what that imports, are the schemas."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from twopc.errors import ConfigurationError
from twopc.kafka.registry.client import IncompatibleSchema, RegistryClient
from twopc.kafka.registry.format import Format, Read, Write
from twopc.kafka.registry.framing import behind_indexes, packed_indexes
from twopc.kafka.registry.schema import Schema, SchemaReference
from twopc.serde import Protobuf, Serde

_KNOWN_TO_ALL = "google/protobuf/"


@dataclass(frozen=True)
class ProtobufFormat(Format):
    """Each import is a subject of its own, by its path, but for those that every Protobuf has."""

    serde: Protobuf

    type: ClassVar[str] = "PROTOBUF"

    @property
    def name(self) -> str:
        return str(self.serde.message.DESCRIPTOR.full_name)

    def schema(self, client: RegistryClient) -> Schema:
        return _schema(client, self.serde.message.DESCRIPTOR.file)

    def register_imports(self, client: RegistryClient) -> None:
        _register_imports(client, self.serde.message.DESCRIPTOR.file)

    def unregistered(self) -> Serde:
        return self.serde

    def writer(self, client: RegistryClient) -> Write:
        indexes = packed_indexes(_indexes(self.serde.message.DESCRIPTOR))

        def write(value: Any) -> bytes:
            data = self.serde.serialize(value)
            assert data is not None, "a tombstone is written as one before this"
            return indexes + data

        return Write(write)

    def reader(self, client: RegistryClient, written: Schema) -> Read:
        return Read(lambda data: self.serde.deserialize(behind_indexes(data)))

    def __str__(self) -> str:
        return f"protobuf({self.name})"


def _indexes(message: Any) -> list[int]:
    """Return the place of a message in its file: of the outermost one, then of each inside of the one before."""
    outer = message.containing_type
    if outer is None:
        return [list(message.file.message_types_by_name).index(message.name)]
    return [*_indexes(outer), [kind.name for kind in outer.nested_types].index(message.name)]


def _imports(file: Any) -> Iterator[Any]:
    return (dependency for dependency in file.dependencies if not dependency.name.startswith(_KNOWN_TO_ALL))


def _schema(client: RegistryClient, file: Any) -> Schema:
    return Schema("PROTOBUF", _text(file), tuple(_reference(client, each) for each in _imports(file)))


def _reference(client: RegistryClient, file: Any) -> SchemaReference:
    found = client.found(file.name, _schema(client, file))
    if found is None:
        raise ConfigurationError(
            f"the file {file.name!r}, which a message imports, is not registered under the subject of that name: "
            "register it there, or let the job, with auto_register=True"
        )
    return SchemaReference(file.name, file.name, found[1])


def _register_imports(client: RegistryClient, file: Any) -> None:
    for each in _imports(file):
        _register_imports(client, each)
        try:
            client.register(each.name, _schema(client, each))
        except IncompatibleSchema as error:
            raise ConfigurationError(
                f"the file {each.name!r}, which a message imports, is not compatible with what the subject of that "
                f"name has: {error}"
            ) from error


def _text(file: Any) -> str:
    """Return a file as registries take it of clients that have no source: its descriptor, in base64."""
    return base64.standard_b64encode(file.serialized_pb).decode("ascii")
