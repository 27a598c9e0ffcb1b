"""Named types of an Avro schema, and a schema that has the types of others in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMED = ("record", "error", "enum", "fixed")


def full_name(schema: Any, namespace: str = "") -> str:
    """Return the full name of a named type, as Avro's specification makes it; empty for another type."""
    if not isinstance(schema, Mapping) or schema.get("type") not in NAMED:
        return ""
    return qualified(str(schema.get("name", "")), str(schema.get("namespace", namespace)))


def qualified(name: str, namespace: str) -> str:
    """Return the full name that a name stands for inside a namespace."""
    return name if "." in name or not namespace else f"{namespace}.{name}"


def inlined(schema: Any, types: Mapping[str, Any]) -> Any:
    """Return the schema with the definition of each of these types, by full name, where it is first used."""
    return _inlined(schema, types, "", set())


def _inlined(schema: Any, types: Mapping[str, Any], namespace: str, placed: set[str]) -> Any:
    if isinstance(schema, str):
        return _type_of_name(schema, types, namespace, placed)
    if isinstance(schema, list):
        return [_inlined(branch, types, namespace, placed) for branch in schema]
    if not isinstance(schema, Mapping):
        return schema
    kind = schema.get("type")
    if kind in NAMED:
        name = full_name(schema, namespace)
        placed.add(name)
        inside = name.rpartition(".")[0]
        fields = [
            {**each, "type": _inlined(each.get("type"), types, inside, placed)} for each in schema.get("fields", [])
        ]
        return {**schema, "fields": fields} if "fields" in schema else dict(schema)
    inner = {each: _inlined(schema[each], types, namespace, placed) for each in ("items", "values") if each in schema}
    return {**schema, **inner} if inner else {**schema, "type": _inlined(kind, types, namespace, placed)}


def _type_of_name(name: str, types: Mapping[str, Any], namespace: str, placed: set[str]) -> Any:
    full = qualified(name, namespace)
    if full not in types or full in placed:
        return name
    placed.add(full)
    # Under its full name: what has no namespace would take the one that it now stands in.
    definition = {**types[full], "name": full.rpartition(".")[2], "namespace": full.rpartition(".")[0]}
    return _inlined(definition, types, "", placed)
