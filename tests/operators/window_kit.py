"""Windows without a job around them: records in, what comes out at each side output."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from tests.operators.kit import Node, put_through
from twopc import Json, Serde
from twopc.operators import Dataflow, KeyedStateStore, WindowAggregate
from twopc.operators.sink_output import OnError, fail
from twopc.operators.window_step import Aggregation, Count
from twopc.testing.rows import InputRow, batch_of
from twopc.testing.states import DictStore
from twopc.verify.plain import plainly
from twopc.windows import Windows

OUTPUTS = ("final", "current", "late")

OutputRow = tuple[Any, ...]


class WindowHarness:
    """One windowed aggregation named `op`, of which every output goes somewhere."""

    def __init__(
        self,
        windows: Windows,
        aggregation: Aggregation | None = None,
        *,
        grace_ms: int = 0,
        serde: Serde | None = None,
        store: KeyedStateStore | None = None,
        on_error: OnError = fail,
        outputs: Iterable[str] = OUTPUTS,
        plain: bool = False,
    ) -> None:
        step = WindowAggregate(windows, grace_ms, aggregation or Count(), "op", serde or Json())
        step = plainly(step) if plain else step
        nodes = [Node("in"), Node("op", ("in",), step), *(Node(each, (f"op.{each}",)) for each in outputs)]
        self.store = store or DictStore()
        self.flow = Dataflow(nodes, self.store, on_error)

    def put(self, rows: Sequence[InputRow], sizes: Iterable[int] = ()) -> dict[str, list[OutputRow]]:
        """Return what comes out of each output: key and window, or key, value and timestamp of a late record."""
        told: defaultdict[str, list[OutputRow]] = defaultdict(list)
        start = 0
        for size in (*sizes, len(rows)):
            if part := rows[start : start + size]:
                for output in put_through(self.flow, "in", batch_of(part)):
                    told[output.sink] += _told(output.sink, output.batch)
            start += size
        self.flow.write_back()
        return dict(told)


def _told(output: str, batch: Any) -> list[OutputRow]:
    columns = zip(batch.keys, batch.values, batch.timestamps, strict=True)
    if output == "late":
        return list(columns)
    return [(key, window.start, window.end, window.value) for key, window, _ in columns]


def at(*parts: tuple[Any, int | None], value: Any = 1, partition: int = 0) -> list[InputRow]:
    """Rows of key and timestamp."""
    return [
        InputRow(value, key_=key, partition_=partition, offset_=offset, timestamp_=stamp)
        for offset, (key, stamp) in enumerate(parts)
    ]
