"""A join whose records come to two ports, apart or together, and are told by the number of that."""

from __future__ import annotations

from collections.abc import Sequence

from twopc.column import Over
from twopc.operators.result import Result, Work
from twopc.record import Batch
from twopc.verify.plain.timed import PlainTimed


class PlainSided(PlainTimed):
    """`_sides` says of each record of the batch in hand to which port it came: 0 or 1."""

    _sides: Sequence[int] = ()

    @property
    def ports(self) -> Sequence[Work]:
        return [self._of_side(side) for side in (0, 1)]

    def together(self, numbers: Sequence[int]) -> Work:
        def work(batch: Batch, over: Over) -> Result:
            self._sides = numbers[len(numbers) - len(batch) :]
            return self._process(batch, over)

        return work

    def _of_side(self, side: int) -> Work:
        def work(batch: Batch, over: Over) -> Result:
            self._sides = [side] * len(batch)
            return self._process(batch, over)

        return work
