"""The places of a graph that a batch comes to, one after the other, and how far from its source one may be cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from twopc.operators.meeting import Meeting
from twopc.operators.result import Work
from twopc.operators.step import Step


@dataclass(slots=True, eq=False)
class Stop:
    """One place that a batch comes to: a step with what it does, a way to a meeting, or a sink with neither.

    `of_several`: what comes waits at the meeting only in a turn of several sources; else it goes on at once.
    """

    id: str
    step: Step | None
    operate: Work | None
    following: tuple[Stop, ...] = ()
    sides: Mapping[str, tuple[Stop, ...]] = field(default_factory=dict)
    """The operators that follow each side output."""
    meeting: Meeting | None = None
    way: int = 0
    """The number of the way, among those to the meeting, that leads through here."""
    of_several: bool = False


def trunk(stops: tuple[Stop, ...]) -> Iterator[Stop]:
    """Yield the steps, in their order, at which a batch of one source that begins here may be cut."""
    while len(stops) == 1:
        stop = stops[0]
        if stop.step is not None:
            yield stop
            if not stop.step.one_to_one:
                return
        elif not stop.of_several:
            return
        stops = stop.following


def way_to_meeting(stops: tuple[Stop, ...]) -> tuple[Meeting | None, frozenset[Stop]]:
    """Return the meeting of several sources that all which begins here comes to, and the steps on the way.

    None where some of it goes elsewhere, or has changed a state before: then nothing may wait on the way.
    """
    on_the_way: set[Stop] = set()
    while len(stops) == 1:
        stop = stops[0]
        if stop.of_several:
            return stop.meeting, frozenset(on_the_way)
        if stop.step is None or not stop.step.one_to_one:
            break
        on_the_way.add(stop)
        stops = stop.following
    return None, frozenset()
