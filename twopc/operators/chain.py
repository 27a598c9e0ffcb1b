"""The run-time of steps that stand in one row, between one source and one sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from twopc.operators.dataflow import Dataflow
from twopc.operators.steps import StatefulMap, Step
from twopc.operators.write_back_cache import KeyedStateStore
from twopc.record import Batch

_IN, _OUT = "in", "out"


class _Node(NamedTuple):
    id: str
    inputs: tuple[str, ...]
    what: Any


class Chain:
    """A row of steps, with the store that holds their keyed state: batches in, batches out."""

    def __init__(self, steps: Sequence[Step], store: KeyedStateStore) -> None:
        nodes = [_Node(_IN, (), None)]
        for number, step in enumerate(steps, 1):
            operator_id = step.name if isinstance(step, StatefulMap) else f"{number}"
            nodes.append(_Node(operator_id, (nodes[-1].id,), step))
        self._flow = Dataflow([*nodes, _Node(_OUT, (nodes[-1].id,), None)], store)

    def process(self, batch: Batch) -> Batch:
        """Return what the steps make of the whole batch, in its order. May be empty."""
        outputs = self._flow.process(_IN, batch)
        return outputs[0].batch if outputs else batch.first(0)

    def write_back(self) -> None:
        """Bring the store up to every batch so far; a snapshot of it holds nothing else."""
        self._flow.write_back()
