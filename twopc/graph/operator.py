"""One operator of a job's graph, and those that records come through before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from twopc.error_policy import ErrorPolicy, Fail
from twopc.operators.broadcast import KeepBroadcast
from twopc.operators.step import Step
from twopc.port import Port
from twopc.sink import Sink
from twopc.source import Source


@dataclass(frozen=True, slots=True)
class Merge:
    """Several streams as one: those of one source in its order, those of different sources in any."""

    operator = "merge"

    def __str__(self) -> str:
        return "merge"


FAIL: ErrorPolicy = Fail()

Operation = Source | Step | Merge | Sink


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a job: its id, the ports that it takes records from, and what it does with them.

    `on_error`, of a source, is what becomes of its records that go wrong, wherever in the job that is. `behind`, of one
    that reads what the job itself writes, is the sink that writes it.
    """

    id: str
    inputs: tuple[str, ...]
    operation: Operation
    on_error: ErrorPolicy = FAIL
    behind: str | None = None

    @property
    def keyed_step(self) -> Step | None:
        """Its step, if all records of a key must come to that under one partition number; else None."""
        return self.operation if isinstance(self.operation, Step) and self.operation.by_key else None

    def __str__(self) -> str:
        if isinstance(self.operation, Source | Sink):
            kind, *rest = (
                f"{name}={value}" if name != "type" else str(value) for name, value in self.operation.describe().items()
            )
            return f"{kind}({', '.join(rest)})"
        return str(self.operation)


def ports_taken(operators: Sequence[Operator]) -> set[Port]:
    """Return the ports from which some operator takes records."""
    return {Port.parse(before) for operator in operators for before in operator.inputs}


def upstream(operators: Sequence[Operator], of: str) -> Iterator[Operator]:
    """Yield every operator from which records come to this one, the nearest first; through no broadcast table."""
    wanted = {of}
    for operator in reversed(operators):
        if operator.id in wanted and (operator.id == of or not isinstance(operator.operation, KeepBroadcast)):
            wanted.update(Port.parse(before).operator for before in operator.inputs)
            if operator.id != of:
                yield operator
