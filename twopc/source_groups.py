"""The groups of a job's sources whose records meet: there the earlier goes first. Pure.

They meet at an operator by key, or before a `key_by`. A source alone meets itself there, where it reads several inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twopc.graph import JobDefinition
from twopc.operators import AssignTimestamps, KeepTable


def source_groups(definition: JobDefinition) -> tuple[tuple[str, ...], ...]:
    """Return the sources that meet, directly or through others, as one tuple for each place without a way to another.

    In each those come first whose records go into tables: of two records of one time the table's is the earlier.
    """
    together: list[set[str]] = []
    timed = definition.timed_inputs.values()
    for sources in (*definition.keyed_inputs.values(), *timed):
        met = set(sources).union(*(each for each in together if not each.isdisjoint(sources)))
        together = [*(each for each in together if each.isdisjoint(sources)), met]
    tables = [key for key, step in definition.steps.items() if isinstance(step, KeepTable)]
    tabled = {source for table in tables for source in definition.sources_before(table)}
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
