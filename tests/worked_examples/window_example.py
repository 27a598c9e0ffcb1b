"""The records of an example, and what a windowed aggregation tells at each of them, both as text.

A record is its time in milliseconds, of key k and value 1: `5`. One of another key is `5:j`, one with a value `5=v`. A
result is told at the record that brings it about: `11 -> j[0,10)=2@9` has key, start, end, value and timestamp, without
the key where that is k. Both ends of sessions and sliding windows belong to them: `[0,5]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from tests.operators.kit import put_through
from tests.operators.window_kit import WindowHarness
from twopc import Serde
from twopc.operators import KeyedStateStore, SinkOutput
from twopc.operators.window_step import Aggregation
from twopc.record import Batch
from twopc.testing.rows import InputRow
from twopc.windows import Aligned, Windows

_RECORD = re.compile(r"(-?\d+)(?::(\w+))?(?:=(\w+))?")


class WindowExample:
    """One operator; `outputs` are those of its streams that are looked at."""

    def __init__(
        self,
        windows: Windows,
        *,
        grace_ms: int = 0,
        outputs: Sequence[str] = ("final",),
        aggregation: Aggregation | None = None,
        serde: Serde | None = None,
        store: KeyedStateStore | None = None,
    ) -> None:
        self._outputs = list(outputs)
        self._behind = ")" if isinstance(windows, Aligned) else "]"
        self._harness = WindowHarness(
            windows, aggregation, grace_ms=grace_ms, serde=serde, outputs=outputs, store=store
        )
        self.store = self._harness.store

    def put(self, records: str, *, partition: int = 0) -> list[str]:
        """Return what is told at each record; what is told by the same is in one line."""
        lines = []
        for record in records.split():
            match = _RECORD.fullmatch(record)
            assert match is not None, record
            at, key, value = match.groups()
            row = InputRow(1 if value is None else _value(value), key or "k", partition, 0, int(at))
            batch = Batch([row], [row.value()], [row.key()], [int(at)], [None])
            told = [
                text
                for output in sorted(put_through(self._harness.flow, "in", batch), key=self._order)
                for text in self._texts(output.sink, output.batch)
            ]
            if told:
                lines.append(f"{record} -> {', '.join(told)}")
        self._harness.flow.write_back()
        return lines

    def _order(self, output: SinkOutput) -> int:
        return self._outputs.index(output.sink)

    def _texts(self, output: str, batch: Batch) -> list[str]:
        columns = zip(batch.keys, batch.values, batch.timestamps, strict=True)
        if output == "late":
            return [f"late {'' if key == 'k' else key}@{at}" for key, _, at in columns]
        return [
            f"{'' if key == 'k' else key}[{window.start},{window.end}{self._behind}={_written(window.value)}@{at}"
            for key, window, at in columns
        ]


def _value(text: str) -> Any:
    return int(text) if text.isdigit() else text


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
