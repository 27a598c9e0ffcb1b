"""The places of a graph at which records of several sources meet, in the order in which each can be left. Pure.

They are merges, operators with several ports for records, and a table by key with the joins that look into it. Records
wait there until all of a turn have come, and then go on in the order of the turn: each has the place of the record that
brought it about. Behind a window or a timer that may be one of another key.
"""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from twopc.operators.node import Node, senders
from twopc.operators.step import Step
from twopc.port import Port


def meeting_points(nodes: Sequence[Node]) -> tuple[frozenset[str], ...] | None:
    """Return the nodes of each point, by id; None where the records of several sources can't go in one turn.

    That is so, too, where one operator of a point feeds another of it, or two points feed each other.
    """
    points = _points(nodes)
    of = {key: point for point in points for key in point}
    before: dict[frozenset[str], set[frozenset[str]]] = {point: set() for point in points}
    for key, point in of.items():
        for sender in senders(nodes, key) - {key}:
            if sender in of:
                before[point].add(of[sender])
    try:
        return tuple(TopologicalSorter(before).static_order())
    except CycleError:
        return None


def comes_by_key(nodes: Sequence[Node], key: str) -> bool:
    """Whether what comes to a node with the place of one record has the key of that.

    It doesn't behind a window, a timer or a join of streams: one record brings about those of others.
    """
    by_id = {node.id: node for node in nodes}
    return not any(_makes_others(by_id[sender].operation) for sender in senders(nodes, key) - {key})


def _makes_others(operation: object) -> bool:
    return isinstance(operation, Step) and operation.by_key and not operation.keys_apart


def _points(nodes: Sequence[Node]) -> list[frozenset[str]]:
    there = {node.id for node in nodes}
    points: list[frozenset[str]] = []
    for node in nodes:
        step = node.operation
        if isinstance(step, Step):
            inputs = zip(step.ports, map(Port.parse, node.inputs), strict=True)
            # A broadcast table is none of the nodes: no record of a turn comes to it.
            tables = {at.operator for port, at in inputs if not port.takes_records and at.operator in there}
            if not tables and sum(port.takes_records for port in step.ports) < 2:
                continue
            joined = [point for point in points if not point.isdisjoint(tables)]
            points = [point for point in points if point.isdisjoint(tables)]
            points.append(frozenset({node.id}).union(tables, *joined))
        elif len(node.inputs) > 1:
            points.append(frozenset({node.id}))
    return points
