"""The stream times that partition numbers without records follow. Pure.

Each subtask tells of its own numbers as it acknowledges a checkpoint. What comes of that for the whole job comes back
with the next trigger: the least time of the numbers that have records, and the greatest of all where none has any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NumberTimes:
    """The stream times of an operator under the partition numbers of one subtask, in Unix milliseconds.

    `least` is that of numbers that have records, None where none has; `greatest` that of all, None before any. One that
    has records and no time yet `holds` the others.
    """

    operator: str
    least: int | None
    greatest: int | None
    holds: bool = False


@dataclass(frozen=True, slots=True)
class FollowedTime:
    """The stream time up to which numbers without records go, of one operator."""

    operator: str
    time: int


def followed(told: Iterable[Sequence[NumberTimes]]) -> tuple[FollowedTime, ...]:
    """Return the time of each operator, of what every subtask told; an operator whose time nobody knows has none."""
    of_operators: dict[str, list[NumberTimes]] = defaultdict(list)
    for every in told:
        for times in every:
            of_operators[times.operator].append(times)
    found = []
    for operator, each in sorted(of_operators.items()):
        if any(times.holds for times in each):
            continue
        least = min((times.least for times in each if times.least is not None), default=None)
        greatest = max((times.greatest for times in each if times.greatest is not None), default=None)
        if (time := greatest if least is None else least) is not None:
            found.append(FollowedTime(operator, time))
    return tuple(found)
