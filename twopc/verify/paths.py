"""The ways of records through a job's graph, from a source to a sink, each on its own. Pure.

Order is kept on every path, and that between two paths is not judged: so a replay runs each by itself, with a copy of
what follows a merge for each of the streams that it merges.

Where records meet by key, what is made depends on how they interleave: so an operator by key is there once, with all
that comes to it. Records of several inputs meet there in the order of event time, as long as each was there when its
turn came (`meetings`); those of one stream in its own order, whatever branches they took.

Invariant: nothing that a path makes depends on another order of inputs than that. What does is `undetermined`, and no
path leads through it.

A topic of the job's own (`key_by`) ends paths and begins others: in which order records of several inputs met there,
the topic itself has. So what is read there is as determined as any input is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from twopc.error_policy import ErrorPolicy
from twopc.graph import JobDefinition, Merge, Operator
from twopc.listing import listed
from twopc.operators import JoinBroadcast, WindowAggregate
from twopc.port import Port
from twopc.sink import Sink
from twopc.source import Source
from twopc.source_groups import event_times, source_groups


@dataclass(frozen=True, slots=True)
class PathNode:
    """An operator as it stands on some paths; of one behind a merge there are several, unless it works by key."""

    id: str
    inputs: tuple[str, ...]
    operation: Any
    operator: str


@dataclass(frozen=True, slots=True)
class Paths:
    """The nodes of all paths, in topological order; and why of some operators nothing can be worked out, by id.

    `error_policies` are those of the sources: a record that goes wrong is on no path where the job goes on behind it.
    `meetings` are the sources whose records meet by key, in the order of event time; `event_times` has the functions of
    those that have one of their own. `by_time` has, of each operator whose output depends on that order, what meets.
    """

    nodes: tuple[PathNode, ...]
    undetermined: Mapping[str, str]
    error_policies: Mapping[str, ErrorPolicy]
    meetings: tuple[tuple[str, ...], ...] = ()
    event_times: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    by_time: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, definition: JobDefinition) -> Paths:
        meetings = source_groups(definition)
        # What the job itself writes comes as it is committed: who waits for it, and how long, depends on that.
        stages = definition.stages
        in_order = {source for met in meetings if not any(stages[source] for source in met) for source in met}
        undetermined: dict[str, str] = {}
        by_time: dict[str, str] = {}
        nodes: list[PathNode] = []
        ends: dict[str, tuple[Port, ...]] = {}
        for operator in definition.operators:
            if operator.id in definition.dead_letters:
                undetermined[operator.id] = "dead letters hold stack traces, which no replay has the same"
                continue
            ports = list(map(Port.parse, operator.inputs))
            behind = (undetermined[port.operator] for port in ports if port.operator in undetermined)
            is_by_key = operator.keyed_step is not None
            met = _met(definition, operator) if is_by_key else ""
            tangled = _tangled(operator, met, in_order.isdisjoint(definition.sources_before(operator.id)))
            if reason := tangled or next(behind, ""):
                undetermined[operator.id] = reason
            if met := met or next((by_time[port.operator] for port in ports if port.operator in by_time), ""):
                by_time[operator.id] = met
            before = [
                tuple(Port(end.operator, port.output or end.output) for end in ends[port.operator]) for port in ports
            ]
            if tangled or (reason and is_by_key):
                ends[operator.id] = ()
            elif isinstance(operator.operation, Merge):
                ends[operator.id] = tuple(chain.from_iterable(before))
            else:
                copies = (
                    _whole(operator, before) if is_by_key else _copies(operator, tuple(chain.from_iterable(before)))
                )
                ends[operator.id] = tuple(Port(node.id) for node in copies if node.operation is operator.operation)
                nodes += copies
        # Before a key_by records meet by time, too; what is worked out of them there depends on no order.
        here = {source for key in by_time.keys() - undetermined.keys() for source in definition.sources_before(key)}
        ordered = tuple(meeting for meeting in meetings if not here.isdisjoint(meeting))
        policies = definition.error_policies
        return cls(tuple(nodes), undetermined, policies, ordered, event_times(definition), by_time)

    def to(self, sinks: Collection[str]) -> Paths:
        """Return the paths that lead to these sinks."""
        wanted: set[str] = set()
        kept = []
        for node in reversed(self.nodes):
            if node.id in wanted or node.operator in sinks:
                wanted.update(Port.parse(before).operator for before in node.inputs)
                kept.append(node)
        return replace(self, nodes=tuple(kept[::-1]))

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


def _whole(operator: Operator, before: Sequence[Sequence[Port]]) -> list[PathNode]:
    """Return an operator by key, behind a merge of the paths to each of its ports that have several."""
    merges = [
        PathNode(f"{operator.id}/{number}", tuple(map(str, ports)), Merge(), operator.id)
        for number, ports in enumerate(before)
        if len(ports) > 1
    ]
    by_number = {merge.id: merge.id for merge in merges}
    inputs = (by_number.get(f"{operator.id}/{number}") or str(ports[0]) for number, ports in enumerate(before))
    return [*merges, PathNode(operator.id, tuple(inputs), operator.operation, operator.id)]


def _tangled(operator: Operator, met: str, without_order: bool) -> str:
    """Say why nothing tells what an operator makes of the inputs that meet there; empty where they do."""
    if isinstance(operator.operation, JoinBroadcast):
        return (
            f"{operator.id!r} looks into {operator.operation.table!r}, a broadcast table, and what that held when, no "
            "topic tells"
        )
    if isinstance(operator.operation, WindowAggregate) and operator.operation.idle_ms is not None:
        return (
            f"{operator.id!r} lets partitions without records follow the others (idle=), and when it did, no topic "
            "tells"
        )
    if met and without_order:
        return (
            f"{operator.id!r} works by key on the records of {met}, which meet in an order that no topic has, and what "
            "it makes depends on that order"
        )
    return ""


def _met(definition: JobDefinition, operator: Operator) -> str:
    """Name the inputs whose records meet at an operator by key; empty where it has one."""
    sources = definition.sources_before(operator.id)
    inputs = [name for source in sources for name in definition.sources[source].inputs or (source,)]
    return listed(sorted(inputs)) if len(inputs) > 1 else ""
