"""Reads what one Avro schema wrote into the type of another: Schema Resolution of Avro's specification.

What a value stands for stays: a number that another type would round, or a time that it would cut, is refused by the
name of its field, and so is a logical type that stands for something else. `why_unreadable` has said before what
can't be read at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twopc.serde.avro_binary import AvroError, Input, named
from twopc.serde.avro_logical import Logical
from twopc.serde.avro_named import Enum, Field, Record
from twopc.serde.avro_nested import Array, Map, Union
from twopc.serde.avro_type import Boolean, Integer, Null, Real, Type

Read = Callable[[Input], Any]

_NUMBERS = ("int", "long", "float", "double")


def resolved(writer: Type, reader: Type) -> Read:
    """Return what reads a value of the writer's as one of the reader's; raise AvroError where that can't be."""
    return _Resolution().of(writer, reader)


class _Resolution:
    def __init__(self) -> None:
        self._records: dict[tuple[str, str], Read] = {}

    def of(self, writer: Type, reader: Type) -> Read:
        if isinstance(writer, Union):
            return self._of_union(writer, reader)
        if isinstance(reader, Union):
            return self._into_union(writer, reader)
        if isinstance(writer, Logical) or isinstance(reader, Logical):
            return self._of_logical(writer, reader)
        if isinstance(writer, Record) and isinstance(reader, Record) and _same_name(writer, reader):
            return self._of_record(writer, reader)
        if isinstance(writer, Enum) and isinstance(reader, Enum) and _same_name(writer, reader):
            return lambda data: _symbol(reader, writer.read(data))
        if isinstance(writer, Array) and isinstance(reader, Array):
            element = self.of(writer.of, reader.of)
            return lambda data: writer.read_each(data, element)
        if isinstance(writer, Map) and isinstance(reader, Map):
            element = self.of(writer.of, reader.of)
            return lambda data: writer.read_each(data, element)
        return _of_plain(writer, reader)

    def _of_union(self, writer: Union, reader: Type) -> Read:
        reads = [self._or_refusal(branch, reader) for branch in writer.branches]
        return lambda data: reads[writer.read_number(data)](data)

    def _or_refusal(self, writer: Type, reader: Type) -> Read:
        try:
            return self.of(writer, reader)
        except AvroError as refused:
            why = str(refused)

            def refuse(_: Input) -> Any:
                raise AvroError(why)

            return refuse

    def _into_union(self, writer: Type, reader: Union) -> Read:
        """Read into the branch of the same name, else into the first that takes it."""
        order = sorted(range(len(reader.branches)), key=lambda at: _distance(writer, reader.branches[at]))
        for at in order:
            try:
                read, mark = self.of(writer, reader.branches[at]), reader.marks[at]
            except AvroError:
                continue
            return read if mark is None else _marked(read, mark)
        raise _unreadable(writer, reader)

    def _of_logical(self, writer: Type, reader: Type) -> Read:
        wrote = writer.base if isinstance(writer, Logical) else writer
        if not isinstance(reader, Logical):
            return self.of(wrote, reader)
        if not isinstance(writer, Logical):
            read = self.of(wrote, reader.base)
            return lambda data: reader.restore(read(data))
        if writer.classes != reader.classes or writer.logical != reader.logical:
            raise AvroError(f"{named(reader.field)} was written as {writer.logical}, and is {reader.logical} here")
        return lambda data: _same_meaning(writer, reader, data)

    def _of_record(self, writer: Record, reader: Record) -> Read:
        pair = (writer.name, reader.name)
        if pair not in self._records:
            # Known before its parts are: a record may have a field of its own type.
            parts: list[tuple[str | None, Read]] = []
            missing: list[Field] = []
            order = [each.name for each in reader.fields]
            self._records[pair] = lambda data: _record(parts, missing, order, data)
            parts += [self._of_field(each, reader) for each in writer.fields]
            there = {name for name, _ in parts}
            missing += [each for each in reader.fields if each.name not in there]
            for field in missing:
                field.default()
        return self._records[pair]

    def _of_field(self, writer: Field, reader: Record) -> tuple[str | None, Read]:
        into = next((field for field in reader.fields if writer.name in (field.name, *field.aliases)), None)
        return (None, writer.of.read) if into is None else (into.name, self.of(writer.of, into.of))


def _record(parts: list[tuple[str | None, Read]], missing: list[Field], order: list[str], data: Input) -> Any:
    values = {name: read(data) for name, read in parts}
    values |= {field.name: field.of.read(Input(field.default())) for field in missing}
    return {name: values[name] for name in order}


def _marked(read: Read, mark: Callable[[Any], Any]) -> Read:
    return lambda data: mark(read(data))


def _same_meaning(writer: Logical, reader: Logical, data: Input) -> Any:
    value = writer.read(data)
    return reader.restore(reader.prepare(value))


def _symbol(reader: Enum, symbol: str) -> str:
    if symbol in reader.numbers:
        return symbol
    if "default" in reader.definition:
        return str(reader.definition["default"])
    raise reader.unfit(symbol)


def _of_plain(writer: Type, reader: Type) -> Read:
    match writer.kind, reader.kind:
        case "fixed", "fixed" if _same_name(writer, reader):
            return reader.read
        case ("string", "bytes") | ("bytes", "string"):
            return reader.read
        case ("int", "long" | "float" | "double") | ("long", "float" | "double") | ("float", "double"):
            return lambda data: _promoted(reader, writer.read(data))
        case wrote, reads if wrote == reads and isinstance(reader, Integer | Real | Null | Boolean):
            return reader.read
        case ("bytes", "bytes") | ("string", "string"):
            return reader.read
    raise _unreadable(writer, reader)


def _promoted(reader: Type, value: Any) -> Any:
    """Return a number as the wider type has it; raise AvroError for one that it would round."""
    out = bytearray()
    reader.write(value, out)
    return reader.read(Input(bytes(out)))


def _same_name(writer: Type, reader: Type) -> bool:
    return writer.kind == reader.kind and _last(writer.name) in {_last(each) for each in (reader.name, *reader.aliases)}


def _distance(writer: Type, reader: Type) -> int:
    """Say how far a branch is from what was written: one of the same name is nearest, then one of its kind."""
    if writer.kind == reader.kind:
        return 0 if writer.name == reader.name else 1
    return 2 + (_NUMBERS.index(reader.kind) if reader.kind in _NUMBERS else 0)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _unreadable(writer: Type, reader: Type) -> AvroError:
    return AvroError(f"{named(reader.field)} was written as {writer.name}, and is {reader.name} here")
