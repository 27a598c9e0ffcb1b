"""The contract of a format with a registry: the schema that it writes by, and its reading of the schemas of others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from twopc.kafka.registry.client import RegistryClient
from twopc.kafka.registry.schema import Schema
from twopc.serde import Serde


class Read(NamedTuple):
    """Reads what is behind the id: one value, and a column, where that is faster than one by one.

    A column is given with its heads, an index to begin at, and the head that is to be read; what comes of it ends
    before the first element that has another, or that is to be read by itself.
    """

    one: Callable[[bytes], Any]
    column: Callable[[list[bytes | None], int, bytes], list[Any]] | None = None


class Write(NamedTuple):
    """Writes what is behind the id, as `Read` reads it; `one` is given no None, and a column puts the head before."""

    one: Callable[[Any], bytes]
    column: Callable[[list[Any], int, bytes], list[bytes | None]] | None = None


class Format(ABC):
    """One format with one schema, or with none: then it reads by each value's own, and can't write."""

    #: As registries call it.
    type: ClassVar[str]

    @property
    @abstractmethod
    def name(self) -> str:
        """The full name of what the schema is of; empty where it has none."""

    @abstractmethod
    def schema(self, client: RegistryClient) -> Schema | None:
        """Return the schema as it is registered, with its references; None where there is none.

        Raise ConfigurationError where what it refers to is not registered.
        """

    def register_imports(self, client: RegistryClient) -> None:
        """Register what the schema refers to, where the format has it at hand."""

    @abstractmethod
    def unregistered(self) -> Serde | None:
        """Return what keeps these values where no registry is asked; None where that takes one."""

    @abstractmethod
    def writer(self, client: RegistryClient) -> Write:
        """Return what makes the bytes behind the id; it raises what says which field doesn't fit."""

    @abstractmethod
    def reader(self, client: RegistryClient, written: Schema) -> Read:
        """Return what reads what was written with a schema of this type; raise ValueError where it can't be read."""
