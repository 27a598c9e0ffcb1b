"""The groups of a job's sources whose records meet: there the earlier goes first. Pure.

They meet at an operator by key, or before a `key_by`. A source alone meets itself there, where it reads several inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twopc.graph import JobDefinition
from twopc.operators import AssignTimestamps
from twopc.operators.step import Step
from twopc.port import Port


def source_groups(definition: JobDefinition) -> tuple[tuple[str, ...], ...]:
    """Return the sources that meet, directly or through others, as one tuple for each place without a way to another.

    In each those come first whose records go into tables: of two records of one time the table's is the earlier.
    """
    together: list[set[str]] = []
    timed = definition.timed_inputs.values()
    for sources in (*definition.keyed_inputs.values(), *timed):
        met = set(sources).union(*(each for each in together if not each.isdisjoint(sources)))
        together = [*(each for each in together if each.isdisjoint(sources)), met]
    earlier = [
        Port.parse(before).operator
        for operator in definition.operators
        if isinstance(operator.operation, Step)
        for port, before in zip(operator.operation.ports, operator.inputs, strict=True)
        if port.name in operator.operation.earlier_ports
    ]
    tabled = {source for before in earlier for source in (before, *definition.sources_before(before))}
    in_order = sorted(definition.sources, key=lambda source: source not in tabled)
    alone = {sources[0] for sources in timed if len(sources) == 1 and len(definition.sources[sources[0]].inputs) != 1}
    groups = [each for each in together if len(each) > 1 or each <= alone]
    return tuple(tuple(source for source in in_order if source in group) for group in groups)


def event_times(definition: JobDefinition) -> dict[str, Callable[[Any], Any]]:
    """Return what extracts the event time from a value, of each source that has such a function."""
    return {
        operator.inputs[0]: operator.operation.function
        for operator in definition.operators
        if isinstance(operator.operation, AssignTimestamps)
    }
