"""An Avro schema made ready: as fastavro is given it, and what it would let pass, checked beside it.

fastavro writes an `int` of any size, cuts a fraction off, and makes infinity of what a `float` can't hold. A check goes
over the fields of such types, and over nothing else; what is in a union fastavro compares itself, when it writes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from fastavro import parse_schema

from twopc.serde.avro_codec import codec_of
from twopc.serde.avro_logical import renamed

if TYPE_CHECKING:
    from twopc.serde._avro import Codec

Check = Callable[[Any], None]

Change = Callable[[str, Mapping[str, Any], str], Any]
"""Told the kind of a type, its schema, and the field that it is of; returns another schema, or None."""

INT = range(-(2**31), 2**31)
LONG = range(-(2**63), 2**63)

_FLOAT = struct.Struct("<f")


class PreparedSchema(NamedTuple):
    """`plain` is as it was given, `strict` with our logical types, both in fastavro's form; `check` may be None.

    So may `codec`, where values go by fastavro alone.
    """

    plain: Any
    strict: Any
    check: Check | None
    codec: Codec | None


@lru_cache(maxsize=256)
def prepared(text: str) -> PreparedSchema:
    """Return the schema of this text ready to be used, made once per process; it is neither pickled nor changed."""
    plain = parse_schema(json.loads(text))
    strict = parse_schema(changed(json.loads(text), renamed))
    return PreparedSchema(plain, strict, _Checks().of(plain, ""), codec_of(strict))


def changed(schema: Any, change: Change, field: str = "") -> Any:
    """Return the schema with those of its types changed for which `change` returns another."""
    if isinstance(schema, list):
        return [changed(branch, change, field) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema["type"]
    if not isinstance(kind, str):
        return {**schema, "type": changed(kind, change, field)}
    if (other := change(kind, schema, field)) is not None:
        return other
    inner = {each: changed(schema[each], change, field) for each in ("items", "values") if each in schema}
    if "fields" in schema:
        fields = schema["fields"]
        inner["fields"] = [{**each, "type": changed(each["type"], change, _path(schema, each))} for each in fields]
    return {**schema, **inner}


class _Checks:
    """Makes the check of each type; None where a type needs none."""

    def __init__(self) -> None:
        self._records: dict[str, list[tuple[str, Check]]] = {}

    def of(self, schema: Any, field: str) -> Check | None:
        if isinstance(schema, list):
            return _of_union(schema, field)
        kind = schema if isinstance(schema, str) else schema["type"]
        if isinstance(kind, list | dict):
            return self.of(kind, field)
        if isinstance(schema, dict):
            if kind in ("record", "error"):
                return self._of_record(schema)
            if kind in ("array", "map"):
                return _of_each(self.of(schema["items" if kind == "array" else "values"], field), kind == "map")
            if "logicalType" in schema and renamed(kind, schema, field) is not None:
                return None
        if kind in self._records:
            return _of_fields(self._records[kind])
        return _of_number(kind, field)

    def _of_record(self, schema: Mapping[str, Any]) -> Check | None:
        # The list is filled while it is known already: a record may have a field of its own type.
        fields = self._records[schema["name"]] = []
        for each in schema["fields"]:
            if (check := self.of(each["type"], _path(schema, each))) is not None:
                fields.append((each["name"], check))
        return _of_fields(fields) if fields else None


def _of_fields(fields: list[tuple[str, Check]]) -> Check:
    def check(value: Any) -> None:
        if isinstance(value, Mapping):
            for name, each in fields:
                if (element := value.get(name)) is not None:
                    each(element)

    return check


def _of_each(inner: Check | None, is_map: bool) -> Check | None:
    if inner is None:
        return None

    def check(value: Any) -> None:
        # What is neither is fastavro's to refuse.
        if is_map and isinstance(value, Mapping):
            value = value.values()
        elif is_map or not isinstance(value, list | tuple):
            return
        for element in value:
            inner(element)

    return check


def _of_union(branches: list[Any], field: str) -> Check | None:
    kinds = {branch for branch in branches if isinstance(branch, str)}
    kinds |= {str(branch["type"]) for branch in branches if isinstance(branch, dict)}
    check = None
    if "int" in kinds and not kinds & {"long", "float", "double"} and "int" in branches:
        check = _of_number("int", field)
    elif "float" in kinds and "double" not in kinds:
        check = _of_number("float", field)
    if check is None:
        return None
    numbers = check

    def check_number(value: Any) -> None:
        if type(value) is int or type(value) is float:
            numbers(value)

    return check_number


def _of_number(kind: str, field: str) -> Check | None:
    match kind:
        case "int" | "long":
            return _of_integers(kind, INT if kind == "int" else LONG, field)
        case "float":
            return _of_floats(field)
        case "boolean":
            return _of_booleans(field)
        case _:
            return None


def _of_integers(kind: str, bounds: range, field: str) -> Check:
    low, high = bounds[0], bounds[-1]

    def check(value: Any) -> None:
        if type(value) is int and low <= value <= high:
            return
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{_name(field)} is {value!r}, which is no {kind}")
        if not low <= value.__index__() <= high:
            raise ValueError(f"{_name(field)} is {value!r}: {_article(kind)} goes from {low} to {high}")

    return check


def _of_floats(field: str) -> Check:
    def check(value: Any) -> None:
        try:
            _FLOAT.pack(value)
        except OverflowError:
            raise ValueError(f"{_name(field)} is {value!r}, which is too large for a float of 32 bits") from None
        except struct.error:
            raise TypeError(f"{_name(field)} is {value!r}, which is no float") from None

    return check


def _of_booleans(field: str) -> Check:
    def check(value: Any) -> None:
        if value is not True and value is not False:
            raise TypeError(f"{_name(field)} is {value!r}, which is no boolean")

    return check


def _article(kind: str) -> str:
    return "an int" if kind == "int" else f"a {kind}"


def _name(field: str) -> str:
    return field or "the value"


def _path(record: Mapping[str, Any], field: Mapping[str, Any]) -> str:
    return f"{record['name'].rpartition('.')[2]}.{field['name']}"
