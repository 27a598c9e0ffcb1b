"""A schema registry in a job: where it is, and the serdes whose schemas it keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twopc.errors import ConfigurationError
from twopc.kafka.registry.access import RegistryAccess
from twopc.kafka.registry.avro import AvroFormat
from twopc.kafka.registry.format import Format
from twopc.kafka.registry.json_schema import JsonFormat
from twopc.kafka.registry.protobuf import ProtobufFormat
from twopc.kafka.registry.schema import SchemaReference
from twopc.kafka.registry.serde import RegistrySerde
from twopc.kafka.registry.subject import SubjectStrategy
from twopc.serde import Protobuf

GivenSchema = Mapping[str, Any] | str | Path


class SchemaRegistry:
    """Confluent's schema registry, or one that speaks as it does; needs the extra `twopc-streams[registry]`.

    `url` is TWOPC_SCHEMA_REGISTRY_URL unless given; several addresses have a comma between them. `properties` are those
    of confluent_kafka's client for TLS and a login (`basic.auth.user.info`, `ssl.ca.location`, `bearer.auth...`), and
    `timeout` in seconds; what a file named by TWOPC_SCHEMA_REGISTRY_CONFIG says, in lines of NAME=VALUE, need not be
    given. Neither shows in a log.

    A schema must have been registered, unless `auto_register`: then the start of the job registers it. `subjects` is
    the naming strategy: "topic", "record" or "topic-record". Nothing is connected to before a run starts: then, before
    the first record, each sink's schema is looked for under its subject, and each source's is held against the
    newest one there. Both raise ConfigurationError where the schema won't do.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        properties: Mapping[str, Any] | None = None,
        auto_register: bool = False,
        subjects: str | SubjectStrategy = SubjectStrategy.TOPIC,
    ) -> None:
        self._access = RegistryAccess.of(url, properties)
        self._auto_register = auto_register
        self._subjects = SubjectStrategy.of(subjects)

    def avro(
        self,
        schema: GivenSchema | None = None,
        *,
        references: Sequence[SchemaReference] = (),
        subject: str | None = None,
    ) -> RegistrySerde:
        """Return a serde for Avro by this schema, a dict or an `.avsc` file; values are those of `Avro`.

        What was written by another one is read into this one, as Avro resolves schemas; without one it is read as it
        was written, and nothing can be written. `references` name the types of other subjects that it uses.
        """
        return self._serde(AvroFormat.of(_given(schema), references), subject)

    def json(
        self,
        schema: GivenSchema | None = None,
        *,
        references: Sequence[SchemaReference] = (),
        subject: str | None = None,
    ) -> RegistrySerde:
        """Return a serde for JSON that is valid by this JSON Schema, a dict or a file; both ways are validated.

        Without one, what is read is valid by the schema that it was written by, and nothing can be written.
        """
        return self._serde(JsonFormat.of(_given(schema), references), subject)

    def protobuf(self, message: type[Any], *, subject: str | None = None) -> RegistrySerde:
        """Return a serde for messages of a class, as `Protobuf` has them.

        The schema is the file of its message; what that imports are references, each a subject by its path.
        """
        return self._serde(ProtobufFormat(Protobuf(message)), subject)

    def _serde(self, made: Format, subject: str | None) -> RegistrySerde:
        return RegistrySerde(self._access, made, self._subjects, subject, self._auto_register)

    def __repr__(self) -> str:
        return f"SchemaRegistry({str(self._access)!r})"


def _given(schema: GivenSchema | None) -> Mapping[str, Any] | None:
    """Return the schema as a dict; raise ConfigurationError for a file that has none."""
    if schema is None or isinstance(schema, Mapping):
        return schema
    try:
        read = json.loads(Path(schema).read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"the schema {schema} can't be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigurationError(f"the schema {schema} is not JSON: {error}") from error
    if not isinstance(read, Mapping):
        raise ConfigurationError(f"the schema {schema} must be one JSON object, but is a {type(read).__name__}")
    return read
