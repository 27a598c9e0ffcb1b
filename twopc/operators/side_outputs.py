"""The side outputs of a batch, beside what functions return: what a call puts there counts when it has returned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from twopc.operators.records import checked
from twopc.record import Record, Row


class SideOutputs:
    """By name of the output, of those that are declared. `row` is what the records of the call in hand are made of."""

    def __init__(self, declared: Collection[str]) -> None:
        self._declared = tuple(declared)
        self.row: Row | None = None
        self._outputs: defaultdict[str, tuple[list[Row], list[Record]]] = defaultdict(lambda: ([], []))
        self._of_call: list[tuple[str, Record]] = []

    def put(self, name: str, record: Record) -> None:
        if name not in self._declared:
            raise ValueError(
                f"there is no side output {name!r}: the processor declares outputs = {self._declared!r}, name it there"
            )
        self._of_call.append((name, checked(record)))

    @property
    def of_call(self) -> list[Record]:
        """What the call in hand has put, to whatever output."""
        return [record for _, record in self._of_call]

    def keep(self) -> None:
        """The function has returned: what it has put goes on."""
        if not self._of_call:
            return
        assert self.row is not None
        for name, record in self._of_call:
            rows, records = self._outputs[name]
            rows.append(self.row)
            records.append(record)
        self._of_call.clear()

    def drop(self) -> None:
        """The function has failed: it has put nothing."""
        self._of_call.clear()

    def of(self, name: str) -> tuple[list[Row], list[Record]]:
        """Return what the batch has put out there."""
        return self._outputs[name]

    def clear(self) -> None:
        """Another batch begins."""
        self._outputs.clear()
