"""stateful_map_records: as `stateful_map`, for a function that sees whole records, and makes any number of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from twopc.operators.instance import Instance, OperatorContext
from twopc.operators.keyed import KeyedOperator, StatefulStep, pair_of
from twopc.operators.records import as_batch, collected_records, kept
from twopc.operators.result import Result
from twopc.record import Batch, Record

StatefulFunction = Callable[[Any, Record], tuple[Any, Record | Iterable[Record] | None]]
"""Takes the state of the key and a record; returns the new state, and what comes of the record."""


@dataclass(frozen=True, slots=True)
class StatefulMapRecords(StatefulStep):
    """(state of the key or None, record) -> (new state or None to forget the key, None, a record or several)

    Each has the key of the record where the job says that, which is checked.
    """

    keeps_key: bool = False
    operator = "stateful_map_records"

    @property
    def called(self) -> Callable[[Any, Record], tuple[Any, list[Record]]]:
        return self._records

    def open(self, context: OperatorContext) -> Instance:
        return _KeyedRecordsOperator(self, context.cache(self.name))

    def _records(self, state: Any, record: Record) -> tuple[Any, list[Record]]:
        new, produced = pair_of(self.function(state, record))
        records: list[Record] = []
        collected_records(produced, records)
        return new, [kept(record.key, each) for each in records] if self.keeps_key else records


class _KeyedRecordsOperator(KeyedOperator):
    def _column(self, batch: Batch) -> list[Any]:
        return batch.records()

    def _result(self, batch: Batch, outputs: list[Any], cause: BaseException | None) -> Result:
        rows = [row for row, group in zip(batch.rows, outputs, strict=True) for _ in group]
        return Result(len(outputs), as_batch(rows, [record for group in outputs for record in group]), cause)
