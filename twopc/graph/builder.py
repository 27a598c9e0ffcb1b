"""A job that is being built, one operator after the other."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from twopc.error_policy import ErrorPolicy, checked_policy
from twopc.errors import ConfigurationError
from twopc.graph.definition import JobDefinition
from twopc.graph.operator import FAIL, Operation, Operator, ports_taken
from twopc.graph.rules import refuse_what_cannot_be
from twopc.operators.step import Step
from twopc.protocol.ids import checked_name
from twopc.sink import Sink
from twopc.source import Source


class GraphBuilder:
    """A job that is being built. What is added is checked at once, as far as a part of a job can be."""

    def __init__(self, name: str) -> None:
        self.name = checked_name("job name", name)
        self.operators: tuple[Operator, ...] = ()
        self._kinds: Counter[str] = Counter()
        self._needless: set[str] = set()

    def add(
        self, what: Operation, inputs: tuple[str, ...] = (), name: str | None = None, on_error: ErrorPolicy = FAIL
    ) -> str:
        """Add an operator; return its id: the name that the user gave it, or its kind and which of this kind it is."""
        kind = _kind(what)
        self._kinds[kind] += 1
        if name is None and isinstance(what, Step):
            name = what.state_name
        if name is not None:
            checked_name(f"the name of a {kind}", name)
            # A sink is nobody's input, and may be named after its topic.
            if "." in name and not isinstance(what, Sink):
                raise ConfigurationError(f"the name of a {kind}, {name!r}, has a dot: give it one without")
        operator_id = f"{kind}-{self._kinds[kind]}" if name is None else name
        return self.append(Operator(operator_id, inputs, what, checked_policy(self.name, on_error)))

    def append(self, operator: Operator) -> str:
        """Add an operator that has its id, and does not count among those of its kind; return the id."""
        operators = (*self.operators, operator)
        refuse_what_cannot_be(self.name, operators)
        self.operators = operators
        return operator.id

    def leave_out_unused(self, operator: str) -> None:
        """Let the job do without this operator where it is nobody's input; else that is refused."""
        self._needless.add(operator)

    def definition(self) -> JobDefinition:
        """Return the complete job, with its sinks of dead letters; raise ConfigurationError for what is missing."""
        used = {port.operator for port in ports_taken(self.operators)}
        known = [operator for operator in self.operators if operator.id in used or operator.id not in self._needless]
        read_back = {operator.behind for operator in known}
        sinks = [
            operator.operation
            for operator in known
            if isinstance(operator.operation, Sink) and operator.id not in read_back
        ]
        operators = tuple(
            replace(operator, operation=operator.operation.beside(sinks))
            if isinstance(operator.operation, Sink) and operator.id in read_back
            else operator
            for operator in known
        )
        first: dict[str, ErrorPolicy] = {}
        for policy in (operator.on_error for operator in known):
            if policy.sink_id is None:
                continue
            policy.check_beside(first.setdefault(policy.sink_id, policy))
            if policy.sink_id in (operator.id for operator in operators if not operator.inputs):
                continue
            if (sink := policy.dead_letter_sink(sinks)) is not None:
                operators = (*operators, Operator(policy.sink_id, (), sink))
        return JobDefinition(self.name, operators)


def _kind(what: Operation) -> str:
    match what:
        case Source():
            return "source"
        case Sink():
            return "sink"
        case _:
            return what.operator
