"""The stream times that go through a whole job: to partition numbers without records, and through its own topics. Pure.

Each subtask tells of its own numbers as it acknowledges a checkpoint. What comes of that for the whole job comes back
with a later trigger, once that checkpoint is committed everywhere: the least time of the numbers that have records.

One that has none just now rests: it holds nobody up for long. But what comes there next may have been written before
what others had read when it was looked at. So it counts as far as its own records, or as the others were known to be
before that: as the trigger of the same checkpoint had it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class NumberTimes:
    """The stream times of an operator under the partition numbers of one subtask, in Unix milliseconds.

    `least` is that of numbers that have records, None where none has; `greatest` that of all, None before any. One that
    has records and no time yet `holds` the others. `rests` says that some have no records, and may have them again;
    `resting` is the least time of those, None where one has none yet. Of a sink that writes to a topic of the job's
    own, times are those of what goes there.
    """

    operator: str
    least: int | None
    greatest: int | None
    holds: bool = False
    rests: bool = False
    resting: int | None = None


@dataclass(frozen=True, slots=True)
class FollowedTime:
    """The stream time that an operator has reached as a whole: no record of an earlier time is to be waited for."""

    operator: str
    time: int


@dataclass(frozen=True, slots=True)
class JobTimes:
    """What comes of what all subtasks told with one checkpoint; `greatest` is the greatest time of each operator."""

    followed: tuple[FollowedTime, ...] = ()
    greatest: Mapping[str, int] = field(default_factory=dict)


def job_times(told: Iterable[Sequence[NumberTimes]], before: Mapping[str, int]) -> JobTimes:
    """Return the times of each operator; one whose time nobody knows has none to follow.

    `before` are the greatest times that were known when the checkpoint was triggered.
    """
    of_operators: dict[str, list[NumberTimes]] = defaultdict(list)
    for every in told:
        for times in every:
            of_operators[times.operator].append(times)
    followed: list[FollowedTime] = []
    greatest: dict[str, int] = {}
    for operator, each in sorted(of_operators.items()):
        known = [times.greatest for times in each if times.greatest is not None]
        if not known:
            continue
        greatest[operator] = max(known)
        bounds = [times.least for times in each if times.least is not None]
        resting = [_resting(times.resting, before.get(operator)) for times in each if times.rests]
        if any(times.holds for times in each) or None in resting:
            continue
        bounds += [time for time in resting if time is not None]
        followed.append(FollowedTime(operator, min(bounds, default=greatest[operator])))
    return JobTimes(tuple(followed), greatest)


def _resting(own: int | None, before: int | None) -> int | None:
    """Return the time up to which nothing is to come where none has records; None where that is not known."""
    return before if own is None else own if before is None else max(own, before)
