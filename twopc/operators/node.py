"""The operators of a graph as they are run: by id, with the ports that their records come from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, Protocol

from twopc.operators.step import Step
from twopc.port import Port
from twopc.sink import Sink
from twopc.source import Source


class Node(Protocol):
    """An operator of a graph, as far as it matters here; `twopc.graph.Operator` is one."""

    @property
    def id(self) -> str: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def operation(self) -> Any: ...


def sources_before(nodes: Sequence[Node], of: str) -> frozenset[str]:
    """Return the sources from which records come to an operator."""
    wanted = feeding(nodes, (of,))
    return frozenset(node.id for node in nodes if node.id in wanted and not node.inputs)


def sending_sources(nodes: Sequence[Node], of: str) -> frozenset[str]:
    """Return the sources whose records come to an operator: of those before it, not that of a table it looks into."""
    sending = senders(nodes, of)
    return frozenset(node.id for node in nodes if node.id in sending and not node.inputs)


def sources_with_marks(nodes: Sequence[Node]) -> frozenset[str]:
    """Return the sources in whose records there are marks of time, which alone move it behind them."""
    return frozenset(node.id for node in nodes if isinstance(node.operation, Source) and node.operation.has_marks)


def marked_before(nodes: Sequence[Node], of: str) -> frozenset[str]:
    """Return the sources with marks whose records come to an operator; where there are any, marks alone move time."""
    return sending_sources(nodes, of) & sources_with_marks(nodes)


def feeding(nodes: Sequence[Node], some: Iterable[str]) -> frozenset[str]:
    """Return the operators from which records come to some, and those themselves."""
    wanted = set(some)
    for node in reversed(nodes):
        if node.id in wanted:
            wanted.update(Port.parse(before).operator for before in node.inputs)
    return frozenset(wanted)


def senders(nodes: Sequence[Node], of: str) -> frozenset[str]:
    """Return an operator and those whose records come to it. A table that was looked into has sent none."""
    wanted = {of}
    for node in reversed(nodes):
        if node.id in wanted:
            wanted.update(Port.parse(before).operator for before in _record_inputs(node))
    return frozenset(wanted)


def _record_inputs(node: Node) -> Sequence[str]:
    if not isinstance(node.operation, Step):
        return node.inputs
    ports = zip(node.operation.ports, node.inputs, strict=True)
    return [before for port, before in ports if port.takes_records]


def ways_meet(nodes: Sequence[Node], ports: Iterable[str]) -> bool:
    """Whether records of one source come to several of these ports."""
    sources = [sources_before(nodes, Port.parse(port).operator) for port in ports]
    return any(one & other for one, other in combinations(sources, 2))


def sharing_outputs(nodes: Sequence[Node]) -> list[list[str]]:
    """Return the sinks, by id, of each set that has the same outputs and records of one source."""
    by_outputs: defaultdict[tuple[str, ...], list[Node]] = defaultdict(list)
    for node in nodes:
        if isinstance(node.operation, Sink) and node.inputs and node.operation.outputs:
            by_outputs[node.operation.outputs].append(node)
    return [
        [sink.id for sink in sinks]
        for sinks in by_outputs.values()
        if ways_meet(nodes, (before for sink in sinks for before in sink.inputs))
    ]
