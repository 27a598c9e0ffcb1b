"""Avro's types that are made of others and have no name: arrays, maps, unions. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from twopc.serde.avro_binary import INT, AvroError, Input, named, put_number
from twopc.serde.avro_branch import branch_of, in_branch
from twopc.serde.avro_type import Integer, Plan, Plans, Real, Text, Type, parts_of

_DEEP = 5
_EXAMPLES = 10
_MOST_EMPTY = 100_000
"""The most elements of a block that may have no bytes: damaged bytes would be read for ever."""


class _Blocks(Type):
    """Elements in blocks, as an array and a map are written; we write one block."""

    def __init__(self, of: Type, field: str) -> None:
        super().__init__(field)
        self.of = of

    def counts(self, data: Input) -> Iterator[int]:
        """Yield the number of elements of each block."""
        while count := data.number(self.field):
            if count < 0:
                data.number(self.field)
            left = len(data.data) - data.at
            if abs(count) > max(left, _MOST_EMPTY):
                raise AvroError(f"{named(self.field)} has a block of {abs(count)} elements in {left} bytes")
            yield abs(count)

    def plan(self, known: Plans) -> Plan | None:
        of = self.of.plan(known)
        return None if of is None else (self.kind, (of,), 0, ())


class Array(_Blocks):
    """Elements one after the other; a tuple is read back as a list."""

    kind = "array"
    classes = (list,)

    def read(self, data: Input) -> list[Any]:
        return self.read_each(data, self.of.read)

    def read_each(self, data: Input, read: Callable[[Input], Any]) -> list[Any]:
        """Return the next value, its elements as they are read so."""
        return [read(data) for count in self.counts(data) for _ in range(count)]

    def write(self, value: Any, out: bytearray) -> None:
        self._write(value, self.of.write, out)

    def write_default(self, default: Any, out: bytearray) -> None:
        self._write(default, self.of.write_default, out)

    def is_own(self, value: Any) -> bool:
        return isinstance(value, list | tuple)

    def example(self, chance: Random, depth: int) -> list[Any]:
        return [self.of.example(chance, depth + 1) for _ in range(_EXAMPLES if depth < _DEEP else 0)]

    def _write(self, value: Any, write: Callable[[Any, bytearray], None], out: bytearray) -> None:
        if not isinstance(value, list | tuple):
            raise self.unfit(value)
        if value:
            put_number(out, len(value))
        for element in value:
            write(element, out)
        put_number(out, 0)


class Map(_Blocks):
    """Elements by text."""

    kind = "map"
    classes = (dict,)

    def __init__(self, of: Type, field: str) -> None:
        super().__init__(of, field)
        self.key = Text(field)

    def read(self, data: Input) -> dict[str, Any]:
        return self.read_each(data, self.of.read)

    def read_each(self, data: Input, read: Callable[[Input], Any]) -> dict[str, Any]:
        """Return the next value, its elements as they are read so."""
        values: dict[str, Any] = {}
        for count in self.counts(data):
            for _ in range(count):
                key = self.key.read(data)
                if key in values:
                    raise AvroError(f"{named(self.field)} has the key {key!r} twice, of which a dict keeps one")
                values[key] = read(data)
        return values

    def write(self, value: Any, out: bytearray) -> None:
        self._write(value, self.of.write, out)

    def write_default(self, default: Any, out: bytearray) -> None:
        self._write(default, self.of.write_default, out)

    def is_own(self, value: Any) -> bool:
        return isinstance(value, Mapping)

    def example(self, chance: Random, depth: int) -> dict[str, Any]:
        count = _EXAMPLES if depth < _DEEP else 0
        return {self.key.example(chance, depth): self.of.example(chance, depth + 1) for _ in range(count)}

    def _write(self, value: Any, write: Callable[[Any, bytearray], None], out: bytearray) -> None:
        if not isinstance(value, Mapping):
            raise self.unfit(value)
        if value:
            put_number(out, len(value))
        for key, element in value.items():
            self.key.write(key, out)
            write(element, out)
        put_number(out, 0)


class Union(Type):
    """One of several types. A value whose type alone doesn't say which knows its branch when it is read."""

    kind = "union"

    def __init__(self, branches: Sequence[Type], field: str) -> None:
        super().__init__(field)
        self.branches = tuple(branches)
        self.numbers = {branch.name: at for at, branch in enumerate(self.branches)}
        self.classes = tuple(kind for branch in self.branches for kind in branch.classes)
        self.marks = tuple(self._mark(at) for at in range(len(self.branches)))

    def read_number(self, data: Input) -> int:
        """Return the branch of the next value, which follows."""
        number = data.number(self.field)
        if not 0 <= number < len(self.branches):
            raise AvroError(f"{named(self.field)} is of branch {number} of a union, which has {len(self.branches)}")
        return number

    def read(self, data: Input) -> Any:
        number = self.read_number(data)
        value, mark = self.branches[number].read(data), self.marks[number]
        return value if mark is None else mark(value)

    def write(self, value: Any, out: bytearray) -> None:
        branch = branch_of(value)
        if branch is not None and branch in self.numbers:
            self._write(self.numbers[branch], value, out)
            return
        taken, why = self._taken([each for each in self.branches if each.is_own(value)], value)
        if not taken:
            rest = [each for each in self.branches if not each.is_own(value) and each.kind != "null"]
            taken, other = self._taken(rest, value)
            why = why or other
        if not taken:
            raise why or self.unfit(value, f"which is none of {', '.join(self.numbers)}")
        if len(taken) > 1:
            names = " and ".join(taken)
            call = f"Avro.in_branch({next(iter(taken))!r}, ...)"
            raise self.unfit(value, f"which may be {names}: say which, as {call} does")
        out += next(iter(taken.values()))

    def write_default(self, default: Any, out: bytearray) -> None:
        """Write the default in the first branch that takes it."""
        start = len(out)
        for at, branch in enumerate(self.branches):
            try:
                put_number(out, at)
                branch.write_default(default, out)
            except AvroError:
                del out[start:]
            else:
                return
        raise self.unfit(default, f"which is none of {', '.join(self.numbers)}")

    def is_own(self, value: Any) -> bool:
        return any(branch.is_own(value) for branch in self.branches)

    def example(self, chance: Random, depth: int) -> Any:
        at = chance.randrange(len(self.branches))
        if depth >= _DEEP:
            at = self.numbers.get("null", at)
        value, mark = self.branches[at].example(chance, depth + 1), self.marks[at]
        return value if mark is None else mark(value)

    def plan(self, known: Plans) -> Plan | None:
        parts = parts_of(self.branches, known)
        return None if parts is None else (self.kind, parts, 0, (self._clear(), self.marks))

    def _clear(self) -> dict[type, int]:
        """Return the branch of each type of values that needs no more to be told."""
        plain = [(at, branch) for at, branch in enumerate(self.branches) if self.marks[at] is None]
        unclear = [kind for at, branch in enumerate(self.branches) if self.marks[at] for kind in branch.classes]
        return {kind: at for at, each in plain for kind in each.classes if kind is float or kind not in unclear}

    def _write(self, at: int, value: Any, out: bytearray) -> None:
        put_number(out, at)
        self.branches[at].write(value, out)

    def _taken(self, branches: Sequence[Type], value: Any) -> tuple[dict[str, bytes], AvroError | None]:
        """Return what each of these branches writes of a value, and what the only one says that doesn't take it.

        Of numbers the first is enough: they are the same in each. A double is before a float, which would round.
        """
        taken: dict[str, bytes] = {}
        why, is_number = None, False
        for branch in sorted(branches, key=lambda each: each.kind == "float"):
            if is_number and isinstance(branch, Integer | Real):
                continue
            out = bytearray()
            try:
                self._write(self.numbers[branch.name], value, out)
            except AvroError as error:
                why = error
                continue
            taken[branch.name] = bytes(out)
            is_number = is_number or isinstance(branch, Integer | Real)
        return taken, why if len(branches) == 1 else None

    def _mark(self, at: int) -> Callable[[Any], Any] | None:
        """Return what has a value know the branch; None where it need not."""
        own = self.branches[at]
        others = [
            (i, branch) for i, branch in enumerate(self.branches) if i != at and set(branch.classes) & set(own.classes)
        ]
        if not others or own.kind == "double":
            return None
        if not isinstance(own, Integer):
            return partial(in_branch, own.name)
        if all(i > at for i, _ in others):
            return None
        return lambda value: in_branch(own.name, value) if value in INT else value
