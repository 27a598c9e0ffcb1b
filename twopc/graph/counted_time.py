"""The operators of a job as a subtask runs them: with a step behind each source whose time somebody asks for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from twopc.graph.operator import Operator
from twopc.operators import AssignTimestamps
from twopc.operators.source_times import CountTime

SUFFIX = "/time"
"""What no id of a job's own ends with."""


def with_counted_time(operators: Sequence[Operator], sources: Collection[str]) -> list[Operator]:
    """Return the operators with a step that counts the time of these sources, once their records have timestamps."""
    behind = {source: source for source in sources} | {
        operator.inputs[0]: operator.id for operator in operators if isinstance(operator.operation, AssignTimestamps)
    }
    counted = {at: source for source, at in behind.items() if source in sources}
    found: list[Operator] = []
    for operator in operators:
        inputs = (f"{counted[before]}{SUFFIX}" if before in counted else before for before in operator.inputs)
        found.append(replace(operator, inputs=tuple(inputs)))
        if (source := counted.get(operator.id)) is not None:
            found.append(Operator(f"{source}{SUFFIX}", (operator.id,), CountTime(source)))
    return found
