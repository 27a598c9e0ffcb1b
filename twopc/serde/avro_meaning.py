"""What the values of an Avro schema are: two schemas that differ in it read the same bytes as something else. Pure.

That is more than Avro's Parsing Canonical Form, which leaves logical types out: a decimal of another scale has the same
bytes. Documentation, aliases and defaults say nothing of what is written already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEPT = ("name", "size", "symbols", "logicalType")


def difference(written: Any, declared: Any) -> str | None:
    """Say where values of these schemas, which have full names, differ; None where they are the same."""
    return _difference(_meaning(written), _meaning(declared), "")


def _meaning(schema: Any) -> Any:
    if isinstance(schema, str):
        return schema
    if isinstance(schema, list):
        return [_meaning(branch) for branch in schema]
    kept = {key: schema[key] for key in _KEPT if key in schema}
    if kept.get("logicalType") == "decimal":
        kept |= {"precision": schema.get("precision"), "scale": schema.get("scale", 0)}
    kept |= {key: _meaning(schema[key]) for key in ("items", "values") if key in schema}
    if "fields" in schema:
        kept["fields"] = [(each["name"], _meaning(each["type"])) for each in schema["fields"]]
    return {"type": schema["type"], **kept} if kept else schema["type"]


def _difference(written: Any, declared: Any, path: str) -> str | None:
    if written == declared:
        return None
    match written, declared:
        case list(), list() if len(written) == len(declared):
            pairs = zip(written, declared, strict=True)
            return next(why for one, other in pairs if (why := _difference(one, other, path)) is not None)
        case {"type": kind}, {"type": other} if kind == other and written.get("name") == declared.get("name"):
            return _inside(written, declared, path)
        case _:
            return f"{path or 'the value'} was {_shown(written)}, and is {_shown(declared)}"


def _inside(written: Mapping[str, Any], declared: Mapping[str, Any], path: str) -> str:
    short = str(written.get("name", "")).rpartition(".")[2]
    if "fields" in written:
        if _names(written) != _names(declared):
            return f"{short} had the fields {', '.join(_names(written))}, and has {', '.join(_names(declared))}"
        pairs = zip(written["fields"], declared["fields"], strict=True)
        of_fields = (_difference(one, other, f"{short}.{name}") for (name, one), (_, other) in pairs)
        return next(why for why in of_fields if why is not None)
    for inner in ("items", "values"):
        if inner in written and (why := _difference(written[inner], declared[inner], path)) is not None:
            return why
    return f"{path or 'the value'} was {_shown(written)}, and is {_shown(declared)}"


def _names(record: Mapping[str, Any]) -> list[str]:
    return [name for name, _ in record["fields"]]


def _shown(schema: Any) -> str:
    match schema:
        case str():
            return schema
        case list():
            return " or ".join(map(_shown, schema))
        case {"logicalType": "decimal"}:
            return f"decimal of precision {schema['precision']} and scale {schema['scale']}"
        case {"symbols": symbols}:
            return f"{schema['name']} of {', '.join(symbols)}"
        case {"size": size}:
            return f"{schema['name']} of {size} bytes"
        case _:
            return str(schema.get("logicalType") or schema.get("name") or schema["type"])
