"""The name under which a join of two streams keeps its records, where the user gives it none.

It is made of what both sides read, so it stays the same whatever else is added to the job or taken out of it: a number
in the order of the job would be another join's then, and with it what that had kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from twopc.errors import ConfigurationError
from twopc.graph.operator import Operator
from twopc.operators.node import senders
from twopc.port import Port
from twopc.source import Source


def join_name(given: str | None, join: str, operators: Sequence[Operator], *ports: str) -> str:
    """Return the name of a join of what comes out of these ports; refuse one without, where nothing makes one up."""
    if name := given or _made_up(operators, *ports):
        return name
    raise ConfigurationError(
        f"{join} keeps records in checkpoints, under its name, and a source does not say what it reads: give the join "
        "a name, name="
    )


def _made_up(operators: Sequence[Operator], *ports: str) -> str | None:
    sides: list[str] = []
    for port in ports:
        before = senders(operators, Port.parse(port).operator)
        sources = [
            operator.operation
            for operator in operators
            if operator.id in before and isinstance(operator.operation, Source)
        ]
        if not all(source.inputs for source in sources):
            return None
        sides.append("-".join(read for source in sources for read in source.inputs))
    # An operator's name has no dot: a port's has one.
    return "-join-".join(sides).replace(".", "_")
