"""Whether what was written with one Avro schema can be read into another: Schema Resolution of Avro's specification.

Both are in the form that fastavro's parser gives them, with full names. As in Avro's own SchemaCompatibility, every
branch of a writer's union must be readable, and names of records, enums and fixed agree in their last part, or by an
alias. The rule says nothing of a `doc`, an order or a logical type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from twopc.serde.avro_names import NAMED

_PROMOTED = {
    ("int", "long"),
    ("int", "float"),
    ("int", "double"),
    ("long", "float"),
    ("long", "double"),
    ("float", "double"),
    ("string", "bytes"),
    ("bytes", "string"),
}


def why_unreadable(writer: Any, reader: Any) -> str | None:
    """Return what of the writer's can't be read, in words, with its path; None where all can."""
    types = (dict(_named_types(writer)), dict(_named_types(reader)))
    return _Resolution(*types).why(writer, reader, "")


class _Resolution:
    def __init__(self, written: Mapping[str, Any], read: Mapping[str, Any]) -> None:
        self._written = written
        self._read = read
        self._under_way: set[tuple[str, str]] = set()

    def why(self, writer: Any, reader: Any, path: str) -> str | None:
        writer, reader = _resolved(writer, self._written), _resolved(reader, self._read)
        if isinstance(writer, list):
            return next((why for branch in writer if (why := self.why(branch, reader, path)) is not None), None)
        if isinstance(reader, list):
            if any(self.why(writer, branch, path) is None for branch in reader):
                return None
            return f"{_at(path)} is {_kind(writer)}, which no branch of the union to read takes"
        return self._of_types(writer, reader, path)

    def _of_types(self, writer: Any, reader: Any, path: str) -> str | None:
        wrote, reads = _kind(writer), _kind(reader)
        if wrote != reads:
            return None if (wrote, reads) in _PROMOTED else f"{_at(path)} is {wrote}, and must be {reads}"
        match reads:
            case "array":
                return self.why(writer["items"], reader["items"], f"{path}[]")
            case "map":
                return self.why(writer["values"], reader["values"], f"{path}[]")
            case "record" | "error" | "enum" | "fixed":
                return self._of_named(writer, reader, path)
            case _:
                return None

    def _of_named(self, writer: Mapping[str, Any], reader: Mapping[str, Any], path: str) -> str | None:
        names = {_last(reader["name"]), *map(_last, reader.get("aliases", ()))}
        if _last(writer["name"]) not in names:
            return f"{_at(path)} is {writer['name']}, and must be {reader['name']}"
        match reader["type"]:
            case "enum":
                return _of_enums(writer, reader, path)
            case "fixed":
                differs = writer["size"] != reader["size"]
                return f"{_at(path)} has {writer['size']} bytes, and must have {reader['size']}" if differs else None
            case _:
                return self._of_records(writer, reader, path)

    def _of_records(self, writer: Mapping[str, Any], reader: Mapping[str, Any], path: str) -> str | None:
        pair = (writer["name"], reader["name"])
        if pair in self._under_way:
            return None
        self._under_way.add(pair)
        there = {field["name"]: field for field in writer["fields"]}
        for field in reader["fields"]:
            inside = f"{path}.{field['name']}" if path else f"{_last(reader['name'])}.{field['name']}"
            written = next((there[name] for name in (field["name"], *field.get("aliases", ())) if name in there), None)
            if written is None:
                why = None if "default" in field else f"{inside} is missing, and has no default"
            else:
                why = self.why(written["type"], field["type"], inside)
            if why is not None:
                self._under_way.discard(pair)
                return why
        return None


def _of_enums(writer: Mapping[str, Any], reader: Mapping[str, Any], path: str) -> str | None:
    unknown = [symbol for symbol in writer["symbols"] if symbol not in reader["symbols"]]
    return f"{_at(path)} may be {unknown[0]!r}, which is unknown" if unknown and "default" not in reader else None


def _named_types(schema: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, list):
        for branch in schema:
            yield from _named_types(branch)
    elif isinstance(schema, Mapping):
        if schema["type"] in NAMED:
            yield schema["name"], schema
            for field in schema.get("fields", ()):
                yield from _named_types(field["type"])
        else:
            for inner in ("type", "items", "values"):
                yield from _named_types(schema.get(inner))


def _resolved(schema: Any, types: Mapping[str, Any]) -> Any:
    """Return what a name stands for, and what a type inside a type is."""
    if isinstance(schema, str):
        return types.get(schema, schema)
    if isinstance(schema, Mapping) and isinstance(schema["type"], list | Mapping):
        return _resolved(schema["type"], types)
    if isinstance(schema, Mapping) and schema["type"] in types and schema["type"] not in NAMED:
        return types[schema["type"]]
    return schema


def _kind(schema: Any) -> str:
    return schema if isinstance(schema, str) else str(schema["type"])


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _at(path: str) -> str:
    return path or "the value"
