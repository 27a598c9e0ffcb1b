"""The ways of records through a job's graph, from a source to a sink, each on its own. Pure.

Order is kept on every path, and that between two paths is not judged: so a replay runs each by itself, with a copy of
what follows a merge for each of the streams that it merges.

Invariant: nothing that a path makes depends on how the records of several inputs interleave. An operator that keeps a
state by key does where a key's records come to it over several paths, or of several topics: no path by itself has what
it makes. So no path leads through it, and what it reaches is `undetermined`.

A topic of the job's own (`key_by`) ends paths and begins others: in which order records of several inputs met there,
the topic itself has. So what is read there is as determined as any input is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twopc.error_policy import ErrorPolicy
from twopc.graph import JobDefinition, Merge, Operator, upstream
from twopc.listing import listed
from twopc.operators import JoinBroadcast, Step
from twopc.port import Port
from twopc.sink import Sink
from twopc.source import Source


@dataclass(frozen=True, slots=True)
class PathNode:
    """An operator as it stands on some paths; of one behind a merge there are several, each with one input."""

    id: str
    inputs: tuple[str, ...]
    operation: Any
    operator: str


@dataclass(frozen=True, slots=True)
class Paths:
    """The nodes of all paths, in topological order; and why of some operators nothing can be worked out, by id.

    `error_policies` are those of the sources: a record that goes wrong is on no path where the job goes on behind it.
    """

    nodes: tuple[PathNode, ...]
    undetermined: Mapping[str, str]
    error_policies: Mapping[str, ErrorPolicy]

    @classmethod
    def of(cls, definition: JobDefinition) -> Paths:
        operators = definition.operators
        tangled = {each.id: said for each in operators if (said := _tangled(operators, each))}
        undetermined: dict[str, str] = {}
        nodes: list[PathNode] = []
        ends: dict[str, tuple[Port, ...]] = {}
        for each in operators:
            if each.id in definition.dead_letters:
                undetermined[each.id] = "dead letters hold stack traces, which no replay has the same"
                continue
            ports = list(map(Port.parse, each.inputs))
            behind = (undetermined[port.operator] for port in ports if port.operator in undetermined)
            if said := tangled.get(each.id) or next(behind, ""):
                undetermined[each.id] = said
            before = tuple(
                Port(end.operator, port.output or end.output) for port in ports for end in ends[port.operator]
            )
            if each.id in tangled:
                ends[each.id] = ()
            elif isinstance(each.operation, Merge):
                ends[each.id] = before
            else:
                copies = _copies(each, before)
                ends[each.id] = tuple(Port(node.id) for node in copies)
                nodes += copies
        return cls(tuple(nodes), undetermined, definition.error_policies)

    def to(self, sinks: Collection[str]) -> Paths:
        """Return the paths that lead to these sinks."""
        wanted: set[str] = set()
        kept = []
        for node in reversed(self.nodes):
            if node.id in wanted or node.operator in sinks:
                wanted.update(Port.parse(before).operator for before in node.inputs)
                kept.append(node)
        return Paths(tuple(kept[::-1]), self.undetermined, self.error_policies)

    def behind(self, sources: Collection[str]) -> frozenset[str]:
        """Return the sinks that these sources have paths to, by operator id."""
        reached: set[str] = set()
        ends: set[str] = set()
        for node in self.nodes:
            if node.operator in sources or any(Port.parse(before).operator in reached for before in node.inputs):
                reached.add(node.id)
                if isinstance(node.operation, Sink):
                    ends.add(node.operator)
        return frozenset(ends)

    @property
    def sources(self) -> dict[str, Source]:
        """The sources at which the paths begin, by operator id."""
        return {node.operator: node.operation for node in self.nodes if not node.inputs}

    @property
    def sinks(self) -> dict[str, PathNode]:
        """The sinks at which the paths end, by node id: a sink behind a merge is the end of several."""
        return {node.id: node for node in self.nodes if isinstance(node.operation, Sink)}


def _copies(operator: Operator, before: Sequence[Port]) -> tuple[PathNode, ...]:
    """Return the operator once for each path that comes to it; not at all behind what no path leads through."""
    if len(before) == 1 or not operator.inputs:
        return (PathNode(operator.id, tuple(map(str, before)), operator.operation, operator.id),)
    return tuple(
        PathNode("/".join((operator.id, *filter(None, port))), (str(port),), operator.operation, operator.id)
        for port in before
    )


def _tangled(operators: Sequence[Operator], operator: Operator) -> str:
    """Say why nothing tells what an operator makes; empty where its input does."""
    if isinstance(operator.operation, JoinBroadcast):
        return (
            f"{operator.id!r} looks into {operator.operation.table!r}, a broadcast table, and what that held when, no "
            "topic tells"
        )
    if not isinstance(operator.operation, Step) or not operator.operation.by_key:
        return ""
    before = list(upstream(operators, operator.id))
    inputs = dict.fromkeys(
        name for each in before if isinstance(each.operation, Source) for name in each.operation.inputs or (each.id,)
    )
    if len(inputs) > 1:
        return (
            f"{operator.id!r} works by key on the records of {listed(inputs)}, which meet in an order that no topic "
            "has, and what it makes depends on that order"
        )
    if len(operator.inputs) > 1 or any(isinstance(each.operation, Merge) for each in before):
        return (
            f"{operator.id!r} keeps state over branches of one stream that meet in an order that no topic has, and "
            "what it makes depends on that order"
        )
    return ""
