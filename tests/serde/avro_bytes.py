"""Random Avro schemas and the bytes of random values, made by nothing of the package: as the specification says.

The bytes are those that Java's encoder makes too: one block, numbers and decimals in as few bytes as they need.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import count
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

Encoded = st.SearchStrategy[bytes]
Typed = tuple[Any, Encoded]
"""A schema, and the bytes of values of it."""


def number(value: int) -> bytes:
    """Return a number of variable length: zigzag, seven bits a byte."""
    bits, data = (value << 1) ^ (value >> 63), b""
    while bits > 0x7F:
        data, bits = data + bytes([bits & 0x7F | 0x80]), bits >> 7
    return data + bytes([bits])


def piece(data: bytes) -> bytes:
    return number(len(data)) + data


def unscaled(value: int) -> bytes:
    return value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, "big", signed=True)


def numbers(low: int, high: int) -> Encoded:
    return (st.integers(low, high) | st.sampled_from([low, high]) | st.integers(max(low, -9), min(high, 9))).map(number)


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


DECIMAL = {"precision": 4, "scale": 2}
_DAY = 86_400_000
_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999
UNNAMED: dict[str, list[Typed]] = {
    "null": [("null", st.just(b""))],
    "boolean": [("boolean", st.sampled_from([b"\0", b"\1"]))],
    "int": [
        ("int", numbers(-(2**31), 2**31 - 1)),
        (logical("int", "date"), numbers(-719_162, 2_932_896)),
        (logical("int", "time-millis"), numbers(0, _DAY - 1)),
    ],
    "long": [
        ("long", numbers(-(2**63), 2**63 - 1)),
        (logical("long", "time-micros"), numbers(0, _DAY * 1000 - 1)),
        (logical("long", "timestamp-millis"), numbers(_FIRST, _LAST)),
        (logical("long", "timestamp-micros"), numbers(_FIRST * 1000, _LAST * 1000)),
        (logical("long", "local-timestamp-millis"), numbers(_FIRST, _LAST)),
    ],
    "float": [("float", st.floats(width=32).map(lambda value: struct.pack("<f", value)))],
    "double": [("double", st.floats().map(lambda value: struct.pack("<d", value)) | st.binary(min_size=8, max_size=8))],
    "bytes": [
        ("bytes", st.binary(max_size=9).map(piece)),
        (logical("bytes", "decimal", **DECIMAL), st.integers(-9999, 9999).map(lambda value: piece(unscaled(value)))),
    ],
    "string": [
        ("string", (st.sampled_from(["A", "B", ""]) | st.text(max_size=9)).map(lambda text: piece(text.encode()))),
        (logical("string", "uuid"), st.uuids().map(lambda value: piece(str(value).encode()))),
    ],
}


def named(draw: st.DrawFn, kind: str, names: count[int], depth: int) -> Typed:
    """Draw a type that has a name of its own; many of them look alike."""
    name = f"N{next(names)}"
    match kind:
        case "enum":
            symbols = draw(st.sampled_from([["A"], ["A", "B"]]))
            return {"type": "enum", "name": name, "symbols": symbols}, st.integers(0, len(symbols) - 1).map(number)
        case "fixed":
            return {"type": "fixed", "name": name, "size": 2}, st.binary(min_size=2, max_size=2)
        case "fixed decimal":
            values = st.integers(-9999, 9999).map(lambda value: value.to_bytes(3, "big", signed=True))
            return {"type": "fixed", "name": name, "size": 3, "logicalType": "decimal", **DECIMAL}, values
        case "fixed uuid":
            return {"type": "fixed", "name": name, "size": 16, "logicalType": "uuid"}, st.uuids().map(bytes_of)
        case _:
            fields = [any_type(draw, names, depth - 1) for _ in range(draw(st.integers(0, 2)))]
            definitions = [{"name": f"f{at}", "type": schema} for at, (schema, _) in enumerate(fields)]
            values = st.tuples(*(each for _, each in fields)).map(b"".join)
            return {"type": "record", "name": name, "fields": definitions}, values


def bytes_of(value: UUID) -> bytes:
    return value.bytes


def of_elements(kind: str, element: Typed) -> Typed:
    schema, values = element
    if kind == "array":
        lists = st.lists(values, max_size=3).map(lambda each: _block(each))
        return {"type": "array", "items": schema}, lists
    entries = st.dictionaries(st.sampled_from(["f0", "f1", "x"]), values, max_size=3)
    block = entries.map(lambda each: _block([piece(key.encode()) + value for key, value in each.items()]))
    return {"type": "map", "values": schema}, block


def _block(elements: list[bytes]) -> bytes:
    return (number(len(elements)) + b"".join(elements) if elements else b"") + b"\0"


def any_type(draw: st.DrawFn, names: count[int], depth: int) -> Typed:
    """Draw a type, a union included where there is depth left."""
    kinds = [*UNNAMED, "enum", "fixed", "fixed decimal", "fixed uuid"]
    if depth > 0:
        kinds += ["array", "map", "record"] * 3 + ["union"] * 8
    kind = draw(st.sampled_from(kinds))
    if kind != "union":
        return _type(draw, kind, names, depth)
    there = draw(st.lists(st.sampled_from([*UNNAMED, "array", "map"]), max_size=5, unique=True))
    more = draw(
        st.lists(st.sampled_from(["enum", "fixed", "fixed decimal", "fixed uuid", "record", "record"]), max_size=4)
    )
    order = draw(st.permutations(there + more)) or ["null"]
    branches = [_type(draw, each, names, depth - 1) for each in order]
    return [schema for schema, _ in branches], st.one_of(
        *(_in_branch(at, each) for at, (_, each) in enumerate(branches))
    )


def _type(draw: st.DrawFn, kind: str, names: count[int], depth: int) -> Typed:
    if kind in UNNAMED:
        return draw(st.sampled_from(UNNAMED[kind]))
    if kind in ("array", "map"):
        return of_elements(kind, any_type(draw, names, depth - 1))
    return named(draw, kind, names, depth)


def _in_branch(at: int, values: Encoded) -> Encoded:
    before = number(at)
    with_branch: Callable[[bytes], bytes] = lambda data: before + data  # noqa: E731
    return values.map(with_branch)


@st.composite
def columns_of_bytes(draw: st.DrawFn) -> tuple[dict[str, Any], list[bytes]]:
    """Draw the schema of a record and values of it, encoded."""
    names = count()
    fields = [any_type(draw, names, 2) for _ in range(draw(st.integers(1, 3)))]
    definitions = [{"name": f"f{at}", "type": schema} for at, (schema, _) in enumerate(fields)]
    values = st.tuples(*(each for _, each in fields)).map(b"".join)
    schema = {"type": "record", "name": "Outer", "fields": definitions}
    return schema, draw(st.lists(values, min_size=1, max_size=6))
