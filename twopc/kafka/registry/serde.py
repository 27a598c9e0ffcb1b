"""A serde whose schemas a registry keeps: the description in a job, and what works for one topic.

Invariant: what is encoded has an id that was found, or registered, before the first record; and an id that is read is
asked for once, outside of the loop over records: a registry that is away is no fault of any record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from twopc.column import map_column
from twopc.errors import ConfigurationError
from twopc.kafka.registry.access import RegistryAccess
from twopc.kafka.registry.client import IncompatibleSchema, RegistryClient, UnknownSchema
from twopc.kafka.registry.format import Format, Read, Write
from twopc.kafka.registry.framing import HEAD_SIZE, head_of, schema_id_of
from twopc.kafka.registry.schema import Schema
from twopc.kafka.registry.subject import SubjectStrategy
from twopc.serde import Serde, SerdeContext
from twopc.serde.ahead import code_ahead


@dataclass(frozen=True, repr=False)
class RegistrySerde(Serde):
    """A format of a registry, as a job has it: it works once it is opened for the keys or values of a topic."""

    access: RegistryAccess
    format: Format
    subjects: SubjectStrategy
    fixed_subject: str | None
    auto_register: bool

    must_be_opened = True

    def open(self, context: SerdeContext) -> OpenedSerde:
        client = RegistryClient(self.access)
        try:
            opened = OpenedSerde(self, client, context)
            opened.check()
            return opened
        except BaseException:
            client.close()
            raise

    def deserialize(self, data: bytes | None) -> Any:
        self._refuse()

    def serialize(self, value: Any) -> bytes | None:
        self._refuse()

    def subject(self, context: SerdeContext) -> str | None:
        """Return the subject of these keys or values; None where it depends on each value."""
        return self.fixed_subject or self.subjects.subject(context, self.format.name)

    def unregistered(self) -> Serde:
        """Return what keeps the same values in a topic of the job's own, without the registry."""
        plain = self.format.unregistered()
        if plain is None:
            raise ConfigurationError(
                f"values of {self} can't go through a topic of the job's own, because their schema is not in the job: "
                "give key_by a serde for them, as value=Avro(schema)"
            )
        return plain

    def __repr__(self) -> str:
        return f"SchemaRegistry({str(self.access)!r}).{self.format}"

    def _refuse(self) -> NoReturn:
        raise ConfigurationError(f"{self} works for the keys or values of a topic: open it for one")


class OpenedSerde(Serde):
    """Works for the keys or values of one topic, on one thread, until it is closed."""

    def __init__(self, serde: RegistrySerde, client: RegistryClient, context: SerdeContext) -> None:
        self._serde = serde
        self._client = client
        self._context = context
        self._subject = serde.subject(context)
        self._readers: dict[bytes, Read] = {}
        self._unreadable: dict[bytes, ValueError] = {}
        self._head = b""
        self._write: Write | None = None

    def check(self) -> None:
        """Ask the registry what can be asked before a record is there; raise ConfigurationError where it won't do."""
        if self._context.writing:
            self._open_writer()
        elif self._subject is not None:
            self._check_latest(self._subject)

    def close(self) -> None:
        self._client.close()

    def deserialize(self, data: bytes | None) -> Any:
        self._learn([data])
        return self._decoded(data)

    def deserialize_all(self, column: list[bytes | None]) -> list[Any]:
        self._learn(column)
        if any(read.column is not None for read in self._readers.values()):
            return code_ahead(self._decoded_ahead, self._decoded, column)
        return map_column(self._decoded, column)

    def serialize(self, value: Any) -> bytes | None:
        if value is None:
            return None
        # A source's serde writes in tests only: not before that is its schema looked for.
        write = self._write or self._open_writer()
        return self._head + write.one(value)

    def serialize_all(self, column: list[Any]) -> list[bytes | None]:
        write = self._write or self._open_writer()
        ahead = write.column
        if ahead is None:
            return map_column(self.serialize, column)
        return code_ahead(lambda values, start: ahead(values, start, self._head), self.serialize, column)

    def __repr__(self) -> str:
        return f"{self._serde} for {self._context}"

    def _decoded(self, data: bytes | None) -> Any:
        if data is None:
            return None
        head = data[:HEAD_SIZE]
        read = self._readers.get(head)
        if read is None:
            raise self._unreadable[head]
        return read.one(data[HEAD_SIZE:])

    def _decoded_ahead(self, column: list[bytes | None], start: int) -> list[Any]:
        """Read one run of values of a schema after the other, up to what is to be read by itself."""
        values: list[Any] = []
        while (at := start + len(values)) < len(column) and (data := column[at]) is not None:
            head = data[:HEAD_SIZE]
            read = self._readers.get(head)
            run = [] if read is None or read.column is None else read.column(column, at, head)
            if not run:
                break
            values += run
        return values

    def _learn(self, column: list[bytes | None]) -> None:
        """Find out how to read what these begin with. What can't be read is asked for again with the next column."""
        heads = {data[:HEAD_SIZE] for data in column if data is not None}
        self._unreadable = {}
        for head in heads - self._readers.keys():
            try:
                self._readers[head] = self._reader(schema_id_of(head))
            except (ValueError, UnknownSchema) as error:
                self._unreadable[head] = ValueError(str(error))

    def _reader(self, schema_id: int) -> Read:
        try:
            return self._reader_of(self._client.schema(schema_id))
        except ValueError as error:
            raise ValueError(f"schema {schema_id} of the registry {error}") from error

    def _reader_of(self, written: Schema) -> Read:
        expected = self._serde.format.type
        if written.type != expected:
            raise ValueError(f"is {written.type}, and the serde reads {expected}")
        return self._serde.format.reader(self._client, written)

    def _check_latest(self, subject: str) -> None:
        latest = self._client.latest(subject)
        if latest is None:
            return
        try:
            self._reader_of(latest.schema)
        except ValueError as error:
            raise ConfigurationError(
                f"{self._context} can't be read with {self._serde}: {latest} {error}. Give the source a "
                "schema that reads that version"
            ) from error

    def _open_writer(self) -> Write:
        own = self._serde.format
        if self._serde.auto_register:
            own.register_imports(self._client)
        schema = own.schema(self._client)
        if schema is None or self._subject is None:
            lacking = "has no schema" if schema is None else "has a schema without a name, and subjects go by it"
            raise ConfigurationError(f"{self._context} can't be written: {self._serde} {lacking}: give it one")
        write = own.writer(self._client)
        self._head = head_of(self._id_of(self._subject, schema))
        self._write = write
        return write

    def _id_of(self, subject: str, schema: Schema) -> int:
        if not self._serde.auto_register:
            found = self._client.found(subject, schema)
            if found is None:
                raise ConfigurationError(self._why_not(subject, schema))
            return found[0]
        try:
            return self._client.register(subject, schema)
        except IncompatibleSchema as error:
            raise ConfigurationError(
                f"{self._context} can't be written: {self._serde} is not compatible with what subject {subject!r} has: "
                f"{error}"
            ) from error

    def _why_not(self, subject: str, schema: Schema) -> str:
        what = f"{self._context} can't be written: {self._serde} is not registered under subject {subject!r}"
        latest = self._client.latest(subject)
        if latest is None:
            return f"{what}, which has no schema: register it there, or let the job, with auto_register=True"
        if self._client.is_compatible(subject, schema):
            may = "it may be the next one: register it, or let the job, with auto_register=True"
            return f"{what}, and differs from its version {latest.version}; {may}"
        return f"{what}, and is not compatible with its version {latest.version}: write by a schema that is registered"
