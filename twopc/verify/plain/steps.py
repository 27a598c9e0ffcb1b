"""Steps of a job that open their plain form."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from twopc.operators import JoinTable, KeepTable, WindowAggregate
from twopc.operators.instance import Instance, OperatorContext
from twopc.operators.stream_join_step import JoinStreams
from twopc.operators.table_join import JoinTables
from twopc.verify.plain.joins import PlainStreamJoin
from twopc.verify.plain.tables import PlainJoin, PlainTable, PlainTableOfTables
from twopc.verify.plain.windows import PlainWindows


@dataclass(frozen=True, slots=True)
class _Windows(WindowAggregate):
    """as its base class says"""

    def open(self, context: OperatorContext) -> Instance:
        return PlainWindows(self, context)


@dataclass(frozen=True, slots=True)
class _Table(KeepTable):
    """as its base class says"""

    def open(self, context: OperatorContext) -> Instance:
        return PlainTable(self)


@dataclass(frozen=True, slots=True)
class _Join(JoinTable):
    """as its base class says"""

    def open(self, context: OperatorContext) -> Instance:
        table = context.instances[self.table]
        assert isinstance(table, PlainTable)
        return PlainJoin(self, table)


@dataclass(frozen=True, slots=True)
class _StreamJoin(JoinStreams):
    """as its base class says"""

    def open(self, context: OperatorContext) -> Instance:  # type: ignore[override]
        return PlainStreamJoin(self, context)


@dataclass(frozen=True, slots=True)
class _TableOfTables(JoinTables):
    """as its base class says"""

    def open(self, context: OperatorContext) -> Instance:  # type: ignore[override]
        return PlainTableOfTables(self, context)


_PLAIN: dict[type[Any], type[Any]] = {
    WindowAggregate: _Windows,
    KeepTable: _Table,
    JoinTable: _Join,
    JoinStreams: _StreamJoin,
    JoinTables: _TableOfTables,
}


def plainly(operation: Any) -> Any:
    """Return a step that opens its plain form, where it has one, and any other operation as it is."""
    plain = _PLAIN.get(type(operation))
    if plain is None:
        return operation
    return plain(**{each.name: getattr(operation, each.name) for each in fields(operation)})
