"""The rules of a broadcast table: it is made of the records of a source of its own, and steps that need only these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from twopc.errors import ConfigurationError
from twopc.operators.broadcast import KeepBroadcast, feeding_broadcasts
from twopc.operators.node import feeding
from twopc.operators.step import Step
from twopc.source import Source

if TYPE_CHECKING:
    from twopc.graph import Operation, Operator


def refuse_broadcasts(job: str, operators: Sequence[Operator]) -> None:
    """Refuse a broadcast table behind what can't be run so, or on a source that something else reads, too."""
    fed = feeding_broadcasts(operators)
    sources = {operator.id for operator in operators if isinstance(operator.operation, Source) and operator.id in fed}
    # A join takes no records of the table that it looks into.
    taking = [operator for operator in operators if not isinstance(operator.operation, KeepBroadcast)]
    for operator in operators:
        if operator.id in fed and (not _may_feed(operator.operation) or operator.behind is not None):
            raise ConfigurationError(
                f"job {job!r}: {operator.id}, {operator}, can't stand before a broadcast table, which every subtask "
                "makes for itself, from the beginning: make it of a source with map, filter, flat_map and peek behind "
                "that, and let another job write what takes more to a topic"
            )
        if operator.id not in fed and (shared := sorted(sources & feeding(taking, (operator.id,)))):
            raise ConfigurationError(
                f"job {job!r}: {shared[0]!r} is read by every subtask, for a broadcast table, and {operator.id}, "
                f"{operator}, takes its records too: read the topic for that by a source of its own"
            )
        if isinstance(operator.operation, Source) and operator.id in fed:
            operator.operation.from_beginning()
            _refuse_dead_letters(job, operator)


def _refuse_dead_letters(job: str, source: Operator) -> None:
    if source.on_error.sink_id is not None:
        raise ConfigurationError(
            f"job {job!r}: records of {source.id!r} that go wrong can be no dead letters: every subtask meets them "
            "again at each start, for its broadcast table: give the source on_error=Skip() or Fail()"
        )


def _may_feed(operation: Operation) -> bool:
    return isinstance(operation, Source) or (isinstance(operation, Step) and operation.feeds_broadcast)
