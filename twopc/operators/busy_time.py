"""How long each operator works on records: its user functions, and what it does around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ParamSpec

from twopc.operators.result import Result

P = ParamSpec("P")


def no_clock() -> float:
    """The time where nobody asks how long anything takes."""
    return 0.0


class BusyTime:
    """The seconds since the subtask began, by operator id: of one thread, with what that waits for meanwhile.

    Two looks at the clock a batch are all that it costs. Another thread may read.
    """

    def __init__(self, clock: Callable[[], float] = no_clock) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}

    def of(self, operator: str, work: Callable[P, Result]) -> Callable[P, Result]:
        """Return the same work of an operator, its time counted."""
        clock, seconds = self._clock, self._seconds
        seconds.setdefault(operator, 0.0)

        def counted(*args: P.args, **named: P.kwargs) -> Result:
            begun = clock()
            try:
                return work(*args, **named)
            finally:
                seconds[operator] += clock() - begun

        return counted

    def milliseconds(self) -> Mapping[str, int]:
        """The time of each operator so far."""
        return {operator: round(seconds * 1_000) for operator, seconds in self._seconds.items()}
