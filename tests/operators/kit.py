"""Graphs of operators without a job around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from twopc import Json
from twopc.operators import Dataflow, KeyedStateStore, SinkOutput, Step, Turn
from twopc.operators.sink_output import OnError, fail
from twopc.record import Batch


class Node(NamedTuple):
    """An operator: what has no inputs is a source, what no other takes as input a sink."""

    id: str
    inputs: tuple[str, ...] = ()
    operation: Any = None


def row(steps: Sequence[Step], store: KeyedStateStore, on_error: OnError = fail) -> Dataflow:
    """Return steps in a row, between a source `in` and a sink `out`."""
    nodes = [Node("in")]
    for number, step in enumerate(steps):
        operator_id = step.state_name or f"{number}"
        nodes.append(Node(operator_id, (nodes[-1].id,), step))
    return Dataflow([*nodes, Node("out", (nodes[-1].id,))], store, on_error)


def put_through(flow: Dataflow, source: str, batch: Batch) -> list[SinkOutput]:
    """Return what the graph makes of the whole batch of this source, in its order."""
    flow.put(Turn.of(source, batch))
    outputs: list[SinkOutput] = []
    while flow.waits:
        outputs += flow.advance()[1]
    return outputs


class Cutting(Json):
    """Cuts a dataflow each time that a value is told."""

    flow: Dataflow

    def deserialize(self, data: bytes | None) -> Any:
        self.flow.cut()
        return super().deserialize(data)


class Chain:
    """Steps in a row, with the store that holds their keyed state: batches in, batches out."""

    def __init__(self, steps: Sequence[Step], store: KeyedStateStore) -> None:
        self._flow = row(steps, store)

    def process(self, batch: Batch) -> Batch:
        """Return what the steps make of the whole batch, in its order. May be empty."""
        outputs = put_through(self._flow, "in", batch)
        return outputs[0].batch if outputs else batch.first(0)

    def write_back(self) -> None:
        """Bring the store up to every batch so far."""
        self._flow.write_back()
