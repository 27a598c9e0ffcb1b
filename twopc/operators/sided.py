"""A processor of two inputs, which is told of each record to which of them it came: what joins are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

from twopc.column import Over
from twopc.operators.instance import OperatorContext
from twopc.operators.process import ProcessOperator
from twopc.operators.process_step import Process
from twopc.operators.result import Result, Work
from twopc.operators.step import InputPort
from twopc.processor import Processor
from twopc.record import Batch


class SidedProcessor(Processor):
    """One that takes exactly one of `are_right` in each call of `process`: whether the record is of the right side."""

    are_right: Iterator[bool]


@dataclass(frozen=True, slots=True)
class SidedJoin(Process):
    """(value of the one, value of the other) -> value; the key stays as it is"""

    keeps_key: bool = True
    operator = "join"
    ports = (InputPort("left"), InputPort("right"))
    ports_together = True
    checks_keys = False

    def open(self, context: OperatorContext) -> ProcessOperator:
        operator = _SidedOperator(self, context)
        operator.open()
        return operator


class _SidedOperator(ProcessOperator):
    """One of both inputs on one subtask."""

    @property
    def ports(self) -> Sequence[Work]:
        return (self._left, self._right)

    def together(self, numbers: Sequence[int]) -> Work:
        def both(batch: Batch, over: Over) -> Result:
            return self._of_sides(batch, over, map(bool, numbers[len(numbers) - len(batch) :]))

        return both

    def _left(self, batch: Batch, over: Over) -> Result:
        return self._of_sides(batch, over, repeat(False))

    def _right(self, batch: Batch, over: Over) -> Result:
        return self._of_sides(batch, over, repeat(True))

    def _of_sides(self, batch: Batch, over: Over, are_right: Iterator[bool]) -> Result:
        assert isinstance(self.processor, SidedProcessor)
        self.processor.are_right = are_right
        return self.process(batch, over)
