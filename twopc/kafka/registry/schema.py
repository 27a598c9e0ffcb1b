"""A schema as a registry keeps it, and what it refers to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A schema that another one uses: the `name` by which it does, and the version of a subject that it is.

    `name` is the full name of a type for Avro, what stands behind `$ref` for JSON Schema, and an import for Protobuf.
    """

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """`type` is AVRO, JSON or PROTOBUF, as the registry calls them."""

    type: str
    text: str
    references: tuple[SchemaReference, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """One version of a subject."""

    subject: str
    version: int
    schema: Schema

    def __str__(self) -> str:
        return f"version {self.version} of subject {self.subject!r}"
