"""The join of two tables by key, as a processor: what it comes to for a key, each time that one side of that changes.

- A change of either side puts out what the function makes of both, or a tombstone where there is nothing any more.
- There is something where both sides have a value (inner), the left one has (left), or either has (outer).
- So a tombstone comes only behind what was put out: the change of a key that had nothing, and has nothing, is none.

As Kafka Streams' KTable joins, but for the last point: its inner join sends tombstones for what it has never sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twopc.operators.functions import function_name
from twopc.operators.how import HowBoth, check_join
from twopc.operators.sided import SidedJoin, SidedProcessor
from twopc.processor import Context, ValueState
from twopc.record import Record
from twopc.serde import Serde


class TableJoinProcessor(SidedProcessor):
    """`left` and `right` are declared by a class of the join's own, with the serdes of the tables."""

    left: ValueState
    right: ValueState

    def __init__(self, function: Callable[[Any, Any], Any], how: HowBoth) -> None:
        self.function, self.how = function, how

    def process(self, record: Record, context: Context) -> Record | None:
        left, right = self.left.get(), self.right.get()
        was_there = self._is_there(left, right)
        if next(self.are_right):
            self.right.set(record.value)
            right = self.right.get()
        else:
            self.left.set(record.value)
            left = self.left.get()
        if self._is_there(left, right):
            return record.replace(value=self.function(left, right))
        return record.replace(value=None) if was_there else None

    def _is_there(self, left: Any, right: Any) -> bool:
        match self.how:
            case "inner":
                return left is not None and right is not None
            case "left":
                return left is not None
            case "outer":
                return left is not None or right is not None


@dataclass(frozen=True, slots=True)
class JoinTables(SidedJoin):
    """(value of the one table, value of the other) -> value; the key stays as it is"""

    processor: TableJoinProcessor

    def __str__(self) -> str:
        return f"join({function_name(self.processor.function)}, how={self.processor.how!r}, name={self.name!r})"


def join_tables(function: Callable[[Any, Any], Any], how: Any, name: str, serdes: tuple[Serde, Serde]) -> JoinTables:
    """Return the step that joins two tables, whose values these serdes encode."""
    check_join("a join of tables", function, how, HowBoth)
    states = {side: ValueState(serde) for side, serde in zip(("left", "right"), serdes, strict=True)}
    own = type("TableJoinOf", (TableJoinProcessor,), states)
    return JoinTables(own(function, how), name)
