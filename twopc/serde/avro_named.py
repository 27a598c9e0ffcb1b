"""Avro's types that have names of their own: enums, fixed, records. Pure."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from random import Random
from typing import Any

from twopc.serde.avro_binary import AvroError, Input, named, put_number
from twopc.serde.avro_type import Plan, Plans, Type, bytes_of_default, parts_of

NO_DEFAULT = object()


class Named(Type):
    """A type that has a name."""

    def __init__(self, definition: Mapping[str, Any], field: str) -> None:
        super().__init__(field)
        self.definition = definition

    @property
    def name(self) -> str:
        return str(self.definition["name"])

    @property
    def aliases(self) -> Collection[str]:
        return [str(each) for each in self.definition.get("aliases", ())]


class Enum(Named):
    """One of some texts, written as its number."""

    kind = "enum"
    classes = (str,)

    def __init__(self, definition: Mapping[str, Any], field: str) -> None:
        super().__init__(definition, field)
        self.symbols = tuple(definition["symbols"])
        self.numbers = {symbol: at for at, symbol in enumerate(self.symbols)}

    def read(self, data: Input) -> str:
        number = data.number(self.field)
        if not 0 <= number < len(self.symbols):
            raise AvroError(f"{named(self.field)} is symbol {number} of {self.name}, which has {len(self.symbols)}")
        return str(self.symbols[number])

    def write(self, value: Any, out: bytearray) -> None:
        if not isinstance(value, str) or value not in self.numbers:
            raise self.unfit(value)
        put_number(out, self.numbers[value])

    def example(self, chance: Random, depth: int) -> str:
        return str(chance.choice(self.symbols))

    def plan(self, known: Plans) -> Plan:
        return (self.kind, (), 0, (self.symbols, self.numbers))


class Fixed(Named):
    """As many bytes as the type says."""

    kind = "fixed"
    classes = (bytes,)

    @property
    def size(self) -> int:
        return int(self.definition["size"])

    def read(self, data: Input) -> bytes:
        return data.take(self.size, self.field)

    def write(self, value: Any, out: bytearray) -> None:
        if not isinstance(value, bytes | bytearray) or len(value) != self.size:
            raise self.unfit(value, f"which is no {self.name} of {self.size} bytes")
        out += value

    def write_default(self, default: Any, out: bytearray) -> None:
        self.write(bytes_of_default(self, default), out)

    def example(self, chance: Random, depth: int) -> bytes:
        return chance.randbytes(self.size)

    def plan(self, known: Plans) -> Plan:
        return (self.kind, (), self.size, ())


class Field:
    """A field of a record."""

    def __init__(self, definition: Mapping[str, Any], of: Type) -> None:
        self.name = str(definition["name"])
        self.aliases = tuple(definition.get("aliases", ()))
        self.of = of
        self._default = definition.get("default", NO_DEFAULT)
        self._encoded: bytes | None = None

    def default(self) -> bytes:
        """Return its default, encoded; raise AvroError where it has none, or one that isn't of its type."""
        if self._encoded is None:
            if self._default is NO_DEFAULT:
                raise AvroError(f"{named(self.of.field)} is missing, and has no default")
            out = bytearray()
            try:
                self.of.write_default(self._default, out)
                self.of.read(Input(bytes(out)))
            except AvroError as error:
                where = named(self.of.field)
                raise AvroError(f"{where} is missing, and its default is not of its type: {error}") from None
            self._encoded = bytes(out)
        return self._encoded

    def write_default(self, default: Mapping[str, Any], out: bytearray) -> None:
        """Write the field as the default of its record has it."""
        if self.name in default:
            self.of.write_default(default[self.name], out)
        else:
            out += self.default()


class Record(Named):
    """`fields` are filled in when they are known: a record may have a field of its own type."""

    kind = "record"
    classes = (dict,)

    def __init__(self, definition: Mapping[str, Any], field: str, fields: list[Field]) -> None:
        super().__init__(definition, field)
        self.fields = fields

    def read(self, data: Input) -> dict[str, Any]:
        return {field.name: field.of.read(data) for field in self.fields}

    def write(self, value: Any, out: bytearray) -> None:
        self._refuse_others(value)
        for field in self.fields:
            if field.name in value:
                field.of.write(value[field.name], out)
            else:
                out += field.default()

    def write_default(self, default: Any, out: bytearray) -> None:
        self._refuse_others(default)
        for field in self.fields:
            field.write_default(default, out)

    def is_own(self, value: Any) -> bool:
        return isinstance(value, Mapping) and value.keys() == {field.name for field in self.fields}

    def example(self, chance: Random, depth: int) -> dict[str, Any]:
        return {field.name: field.of.example(chance, depth + 1) for field in self.fields}

    def plan(self, known: Plans) -> Plan | None:
        if self.name not in known:
            known[self.name] = None
            parts = parts_of((field.of for field in self.fields), known)
            names = tuple(sys.intern(field.name) for field in self.fields)
            known[self.name] = None if parts is None else (self.kind, parts, 0, names)
        return known[self.name]

    def _refuse_others(self, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise self.unfit(value)
        if others := value.keys() - {field.name for field in self.fields}:
            more = ", ".join(sorted(map(repr, others)))
            raise AvroError(f"{named(self.field)} has {more}, of which the schema of {self.name} says nothing")
