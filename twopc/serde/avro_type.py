"""The contract of an Avro type, and those that are made of no others. Pure.

A type takes what reads back equal, and refuses all else by the name of its field; what was read is written as the bytes
that it was read from.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from random import Random
from string import ascii_letters
from typing import Any

from twopc.serde.avro_binary import DOUBLE, FLOAT, INT, LONG, AvroError, Input, named, put_number, put_piece

Plan = tuple[str, tuple[Any, ...], int, tuple[Any, ...]]
"""A type as the compiled codec is given it: its kind, the plans of its parts, the size of a fixed one, its objects."""

Plans = dict[str, Plan | None]
"""The plans of records that are known, by name; None for one that is being made, or that there can't be."""


class Type(ABC):
    """One type where it stands in a schema; `field` names that place, and is empty outside of records."""

    kind: str
    #: What is read is of one of these.
    classes: tuple[type, ...]

    def __init__(self, field: str) -> None:
        self.field = field

    @property
    def name(self) -> str:
        """The name of its branch in a union."""
        return self.kind

    @property
    def aliases(self) -> Collection[str]:
        """Other names of a named type."""
        return ()

    @abstractmethod
    def read(self, data: Input) -> Any:
        """Return the next value; raise AvroError where there is none."""

    @abstractmethod
    def write(self, value: Any, out: bytearray) -> None:
        """Write a value; raise AvroError for one that isn't of this type."""

    def write_default(self, default: Any, out: bytearray) -> None:
        """Write a default, which is JSON as Avro's specification has it."""
        self.write(default, out)

    def is_own(self, value: Any) -> bool:
        """Whether a value is of the kind that is read, and not of another that is taken too."""
        return isinstance(value, self.classes)

    @abstractmethod
    def example(self, chance: Random, depth: int) -> Any:
        """Return a value; small ones at a great depth."""

    def plan(self, known: Plans) -> Plan | None:
        """Return what the compiled codec is given; None where it can't have values of this type."""
        return (self.kind, (), 0, ())

    def unfit(self, value: object, why: str = "") -> AvroError:
        """Return the error that says why a value isn't of this type."""
        return AvroError(f"{named(self.field)} is {value!r}, {why or f'which is no {self.name}'}")


class Null(Type):
    """None, of no bytes."""

    kind = "null"
    classes = (type(None),)

    def read(self, data: Input) -> None:
        return None

    def write(self, value: Any, out: bytearray) -> None:
        if value is not None:
            raise self.unfit(value)

    def example(self, chance: Random, depth: int) -> None:
        return None


class Boolean(Type):
    """One byte, 0 or 1."""

    kind = "boolean"
    classes = (bool,)

    def read(self, data: Input) -> bool:
        byte = data.take(1, self.field)[0]
        if byte > 1:
            raise AvroError(f"{named(self.field)} is the byte {byte}, which is no boolean")
        return byte == 1

    def write(self, value: Any, out: bytearray) -> None:
        if value is not True and value is not False:
            raise self.unfit(value)
        out.append(value)

    def example(self, chance: Random, depth: int) -> bool:
        return chance.random() < 0.5


class Integer(Type):
    """An `int` or a `long`."""

    classes = (int,)

    def __init__(self, kind: str, field: str) -> None:
        super().__init__(field)
        self.kind = kind
        self.bounds = INT if kind == "int" else LONG

    def read(self, data: Input) -> int:
        return self._bounded(data.number(self.field))

    def write(self, value: Any, out: bytearray) -> None:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise self.unfit(value)
        put_number(out, self._bounded(operator.index(value)))

    def is_own(self, value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    def example(self, chance: Random, depth: int) -> int:
        return chance.randint(self.bounds[0], self.bounds[-1])

    def _bounded(self, number: int) -> int:
        if number not in self.bounds:
            article = "an int" if self.kind == "int" else "a long"
            low, high = self.bounds[0], self.bounds[-1]
            raise AvroError(f"{named(self.field)} is {number}: {article} goes from {low} to {high}")
        return number


class Real(Type):
    """A `float` or a `double`; a `float` is the nearest that there is."""

    classes = (float,)

    def __init__(self, kind: str, field: str) -> None:
        super().__init__(field)
        self.kind = kind
        self.form = FLOAT if kind == "float" else DOUBLE

    def read(self, data: Input) -> float:
        encoded = data.take(self.form.size, self.field)
        value: float = self.form.unpack(encoded)[0]
        if value != value and self.form.pack(value) != encoded:
            raise AvroError(f"{named(self.field)} is a signalling NaN, of which Python would make another")
        return value

    def write(self, value: Any, out: bytearray) -> None:
        if isinstance(value, bool) or not isinstance(value, float | int):
            raise self.unfit(value)
        try:
            encoded = self.form.pack(value)
        except OverflowError:
            why = f"which is too large for a {self.kind} of {self.form.size * 8} bits"
            raise self.unfit(value, why) from None
        if isinstance(value, int) and self.form.unpack(encoded)[0] != value:
            raise self.unfit(value, f"which a {self.kind} would round")
        out += encoded

    def example(self, chance: Random, depth: int) -> float:
        value: float = self.form.unpack(self.form.pack(chance.random()))[0]
        return value


class Binary(Type):
    """Bytes, their length before them."""

    kind = "bytes"
    classes = (bytes,)

    def read(self, data: Input) -> bytes:
        return data.take(data.number(self.field), self.field)

    def write(self, value: Any, out: bytearray) -> None:
        if not isinstance(value, bytes | bytearray):
            raise self.unfit(value)
        put_piece(out, bytes(value))

    def write_default(self, default: Any, out: bytearray) -> None:
        self.write(bytes_of_default(self, default), out)

    def example(self, chance: Random, depth: int) -> bytes:
        return chance.randbytes(10)


class Text(Type):
    """UTF-8, its length before it."""

    kind = "string"
    classes = (str,)

    def read(self, data: Input) -> str:
        encoded = data.take(data.number(self.field), self.field)
        try:
            return encoded.decode()
        except UnicodeDecodeError as error:
            raise self.unfit(encoded, f"which is no UTF-8: {error.reason}") from None

    def write(self, value: Any, out: bytearray) -> None:
        if not isinstance(value, str):
            raise self.unfit(value)
        try:
            put_piece(out, value.encode())
        except UnicodeEncodeError as error:
            raise self.unfit(value, f"which UTF-8 can't hold: {error.reason}") from None

    def example(self, chance: Random, depth: int) -> str:
        return "".join(chance.choices(ascii_letters, k=10))


def bytes_of_default(of: Type, default: Any) -> bytes:
    """Return the bytes that a default is the text of: each character stands for the byte of its number."""
    try:
        return str.encode(default, "latin-1")
    except (TypeError, UnicodeEncodeError):
        raise of.unfit(default, f"which is no default of {of.name}") from None


def parts_of(types: Iterable[Type], known: Plans) -> tuple[Plan, ...] | None:
    """Return the plans of the parts of a type; None where one has none."""
    plans = [kind.plan(known) for kind in types]
    there = tuple(plan for plan in plans if plan is not None)
    return there if len(there) == len(plans) else None


def primitive(kind: str, field: str) -> Type | None:
    """Return the primitive type of this name; None where there is none."""
    match kind:
        case "null":
            return Null(field)
        case "boolean":
            return Boolean(field)
        case "int" | "long":
            return Integer(kind, field)
        case "float" | "double":
            return Real(kind, field)
        case "bytes":
            return Binary(field)
        case "string":
            return Text(field)
        case _:
            return None
