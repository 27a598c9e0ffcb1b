"""The operators of a graph as they are run: by id, with the ports that their records come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from twopc.port import Port


class Node(Protocol):
    """An operator of a graph, as far as it matters here; `twopc.graph.Operator` is one."""

    @property
    def id(self) -> str: ...
    @property
    def inputs(self) -> tuple[str, ...]: ...
    @property
    def what(self) -> Any: ...


def sources_before(nodes: Sequence[Node], of: str) -> frozenset[str]:
    """Return the sources from which records come to an operator."""
    wanted = feeding(nodes, (of,))
    return frozenset(node.id for node in nodes if node.id in wanted and not node.inputs)


def feeding(nodes: Sequence[Node], some: Iterable[str]) -> frozenset[str]:
    """Return the operators from which records come to some, and those themselves."""
    wanted = set(some)
    for node in reversed(nodes):
        if node.id in wanted:
            wanted.update(Port.parse(before).operator for before in node.inputs)
    return frozenset(wanted)
