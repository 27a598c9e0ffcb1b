"""Columns of Avro by the compiled codec, where it was built; what it does not take is fastavro's, value by value.

The codec (`_avro.c`) takes what is plain: records of primitive and logical types, enums, fixed and unions, read from
bytes that are exactly theirs, and written from values of exactly their types; of unions, None and one type beside it.
At anything else it stops, and fastavro has that value, or says what is wrong with it: so there is one account of
errors, and nothing is read or written here that fastavro would read or write otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastavro.read import LOGICAL_READERS
from fastavro.write import LOGICAL_WRITERS

from twopc.compiled import AVRO, compiled_in_use
from twopc.serde.avro_names import NAMED

if TYPE_CHECKING:
    from twopc.serde._avro import Codec

Plan = tuple[str, tuple[Any, ...], int, tuple[Any, ...]]
"""A type as the codec is given it: its kind, the plans of its parts, the size of a fixed one, and what belongs to it.

That is the names of a record's fields; an enum's symbols and their numbers; what restores and what prepares the value
of a logical type, and its schema.
"""

_PRIMITIVE = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


def codec_of(schema: Any) -> Codec | None:
    """Return the codec of a schema in fastavro's form; None for one that holds more than what is plain, or without it.

    It is never needed: all goes by fastavro then, with the same results.
    """
    module = compiled_in_use(AVRO)
    if module is None:
        return None
    plan = _Plans().of(schema)
    if plan is None:
        return None
    try:
        codec: Codec = module.Codec(plan)
    except ValueError:
        return None
    return codec


class _Plans:
    """Makes the plan of each type; of a named one it is kept, for where the name alone stands.

    None stands for a type that holds what is not plain.
    """

    def __init__(self) -> None:
        self._named: dict[str, Plan | None] = {}

    def of(self, schema: Any) -> Plan | None:
        if isinstance(schema, list):
            return self._of_parts("union", schema, ())
        if isinstance(schema, str):
            return (schema, (), 0, ()) if schema in _PRIMITIVE else self._named.get(schema)
        kind = schema["type"]
        plan = self._of_type(kind, schema)
        logical = f"{kind}-{schema.get('logicalType')}"
        restore, prepare = LOGICAL_READERS.get(logical), LOGICAL_WRITERS.get(logical)
        if plan is not None and (restore is not None or prepare is not None):
            plan = ("logical", (plan,), 0, (restore, prepare, schema))
        if kind in NAMED:
            self._named[schema["name"]] = plan
        return plan

    def _of_type(self, kind: Any, schema: Mapping[str, Any]) -> Plan | None:
        match kind:
            case "record" | "error":
                # The record's name is not known yet: one within itself is not plain.
                names = tuple(sys.intern(each["name"]) for each in schema["fields"])
                return self._of_parts("record", [each["type"] for each in schema["fields"]], names)
            case "enum":
                symbols = tuple(schema["symbols"])
                return ("enum", (), 0, (symbols, {symbol: at for at, symbol in enumerate(symbols)}))
            case "fixed":
                return ("fixed", (), schema["size"], ())
            case str():
                return self.of(kind)
            case _:
                return None

    def _of_parts(self, kind: str, schemas: Sequence[Any], objects: tuple[Any, ...]) -> Plan | None:
        plans = [self.of(each) for each in schemas]
        known = tuple(plan for plan in plans if plan is not None)
        return (kind, known, 0, objects) if len(known) == len(plans) else None
