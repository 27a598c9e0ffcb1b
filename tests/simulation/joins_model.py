"""The expected output of a join, computed with nothing of twopc: in the one order, or in any that is allowed.

Both kinds of join are a function of the records of one partition number in the order in which they meet. Where that
order is open, the output is right if some order makes it that keeps the order of each side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

from tests.simulation.async_client import is_refused
from tests.simulation.joins import (
    AS_OF,
    BOTH,
    GRACE_MS,
    NAMES,
    NOTHING,
    PAIRS,
    STREAMS,
    TABLE,
    TABLES,
    VERSIONS,
    WITHIN_MS,
    JoinJob,
    is_tombstone,
    other_time_of,
    time_of,
)


class Event(NamedTuple):
    """One record as it comes to the join; a `key` of None never comes there, and None for its value is a tombstone."""

    is_other: bool
    key: int | None
    at: int
    value: int | None


class Waits(NamedTuple):
    """One record that waits for the other side."""

    until: int
    key: int
    is_other: bool
    at: int
    value: int
    met: bool


@dataclass(frozen=True)
class State:
    """The state of a join under one partition number: by key the other's table and its own, or the other's versions.

    Those and who waits are in the order of arrival; of two streams, who waits in the order of time.
    """

    now: int | None = None
    table: tuple[tuple[int, int], ...] = ()
    own: tuple[tuple[int, int], ...] = ()
    versions: tuple[tuple[int, int, int | None], ...] = ()
    waiting: tuple[Waits, ...] = ()


Step = Callable[[State, Event], tuple[State, list[str]]]


def events_of(size: int, other_size: int, keys: int) -> tuple[list[Event], list[Event]]:
    """Return the records of both sides of one partition number."""
    own = [Event(False, None if is_refused(at) else at % keys, time_of(at), at) for at in range(size)]
    other = [Event(True, at % keys, other_time_of(at), None if is_tombstone(at) else at) for at in range(other_size)]
    return own, other


def step_of(joined: JoinJob) -> Step:
    """Return what the join does with one record."""
    steps = {TABLE: _into_table, STREAMS: _with_stream, TABLES: _of_tables, AS_OF: _as_of}
    step = steps[joined.what]
    return lambda state, event: (state, []) if event.key is None else step(joined, state, event, event.key)


def _into_table(joined: JoinJob, state: State, event: Event, key: int) -> tuple[State, list[str]]:
    table = dict(state.table)
    if event.is_other:
        table.pop(key, None)
        added = {} if event.value is None else {key: event.value}
        return replace(state, table=tuple(sorted((table | added).items()))), []
    found = table.get(key)
    if found is None and joined.how == "inner":
        return state, []
    return state, [pair_of(event.value, found)]


def _with_stream(joined: JoinJob, state: State, event: Event, key: int) -> tuple[State, list[str]]:
    now = event.at if state.now is None else max(state.now, event.at)
    state, output = at_time(state, now, joined)
    if event.value is None:
        return state, output
    near = [
        each.key == key and each.is_other != event.is_other and abs(each.at - event.at) <= WITHIN_MS
        for each in state.waiting
    ]
    met = [each for each, is_near in zip(state.waiting, near, strict=True) if is_near]
    output += [pair_of(each.value, event.value) if event.is_other else pair_of(event.value, each.value) for each in met]
    waiting = [each._replace(met=each.met or is_near) for each, is_near in zip(state.waiting, near, strict=True)]
    until = event.at + WITHIN_MS + GRACE_MS + 1
    if until > now:
        waiting.append(Waits(until, key, event.is_other, event.at, event.value, bool(met)))
        waiting.sort(key=lambda each: each.at)
    elif not met and goes_alone(event.is_other, joined):
        output.append(alone(event.value, event.is_other))
    return replace(state, waiting=tuple(waiting)), output


def _of_tables(joined: JoinJob, state: State, event: Event, key: int) -> tuple[State, list[str]]:
    own, other = dict(state.own), dict(state.table)
    before = is_row(own.get(key), other.get(key), joined)
    side = other if event.is_other else own
    side.pop(key, None)
    if event.value is not None:
        side[key] = event.value
    left, right = own.get(key), other.get(key)
    state = replace(state, own=tuple(sorted(own.items())), table=tuple(sorted(other.items())))
    if is_row(left, right, joined):
        return state, [pair_of(left, right)]
    return state, [pair_of(None, None)] if before else []


def _as_of(joined: JoinJob, state: State, event: Event, key: int) -> tuple[State, list[str]]:
    now = event.at if state.now is None else max(state.now, event.at)
    state, output = at_time(state, now, joined)
    if event.is_other:
        return replace(state, versions=(*state.versions, (key, event.at, event.value))), output
    assert event.value is not None, "only the table has tombstones"
    came = Waits(event.at + GRACE_MS, key, False, event.at, event.value, False)
    if came.until > now:
        return replace(state, waiting=(*state.waiting, came)), output
    return state, [*output, *then(state, came, joined)]


def is_row(own: int | None, other: int | None, joined: JoinJob) -> bool:
    """Whether a join of tables has a row for a key of which they have these."""
    sides = {"inner": (own is not None and other is not None), "left": own is not None}
    return sides.get(joined.how, own is not None or other is not None)


def then(state: State, each: Waits, joined: JoinJob) -> list[str]:
    """Return what a record makes with the version that its key had at its time."""
    found = [(at, number, value) for number, (key, at, value) in enumerate(state.versions) if key == each.key]
    _, _, value = max((version for version in found if version[0] <= each.at), default=(0, 0, None))
    return [] if value is None and joined.how == "inner" else [pair_of(each.value, value)]


def at_time(state: State, now: int, joined: JoinJob) -> tuple[State, list[str]]:
    """Let time reach this: who has waited long enough is gone, in order of time and key, this stream's first."""
    gone = sorted((each for each in state.waiting if each.until <= now), key=lambda each: each[:3])
    if joined.what == AS_OF:
        output = [made for each in gone for made in then(state, each, joined)]
    else:
        lone = [each for each in gone if not each.met and goes_alone(each.is_other, joined)]
        output = [alone(each.value, each.is_other) for each in lone]
    return replace(state, now=now, waiting=tuple(each for each in state.waiting if each.until > now)), output


def drained(state: State, joined: JoinJob) -> tuple[State, list[str]]:
    """Let time pass until nobody waits any more."""
    return at_time(state, max((each.until for each in state.waiting), default=0), joined)


def goes_alone(is_other: bool, joined: JoinJob) -> bool:
    return joined.how == "outer" or (joined.how == "left" and not is_other)


def alone(value: int, is_other: bool) -> str:
    return pair_of(None, value) if is_other else pair_of(value, None)


def pair_of(own: int | None, other: int | None) -> str:
    return f"{NOTHING if own is None else own}:{NOTHING if other is None else other}"


def in_event_time(own: Sequence[Event], other: Sequence[Event], joined: JoinJob) -> Iterator[Event]:
    """Yield the earlier record first; a time that jumps back counts as the greatest before it on its side.

    Of one time that goes first which feeds a table, else that of the first source.
    """
    sides = (other, own) if joined.what in (TABLE, AS_OF) else (own, other)
    placed = [
        (at, place, number, event)
        for place, side in enumerate(sides)
        for number, (event, at) in enumerate(zip(side, accumulate((each.at for each in side), max), strict=True))
    ]
    return (event for _, _, _, event in sorted(placed, key=lambda each: each[:3]))


def determined(own: Sequence[Event], other: Sequence[Event], joined: JoinJob) -> tuple[State, list[str]]:
    """Return how it ends where the earlier record goes first, and all that comes out until then."""
    step, state, output = step_of(joined), State(), list[str]()
    for event in in_event_time(own, other, joined):
        state, made = step(state, event)
        output += made
    return state, output


def ends_that_make(
    output: Sequence[str], own: Sequence[Event], other: Sequence[Event], joined: JoinJob, *, whole: bool = True
) -> Iterator[State]:
    """Yield how it may end where some order of the two sides makes exactly this output.

    Unless `whole`, the output of some of the first records of both sides will do.
    """
    step = step_of(joined)
    to_try = [(0, 0, 0, State())]
    seen = set(to_try)
    while to_try:
        at, other_at, told, state = to_try.pop()
        is_end = at == len(own) and other_at == len(other)
        if told == len(output) and (is_end or not whole):
            yield state
            continue
        for is_other, events, place in ((False, own, at), (True, other, other_at)):
            if place == len(events):
                continue
            after, made = step(state, events[place])
            if list(output[told : told + len(made)]) != made:
                continue
            following = (at + (not is_other), other_at + is_other, told + len(made), after)
            if following not in seen:
                seen.add(following)
                to_try.append(following)


def expected_states(sizes: Sequence[int], other_sizes: Sequence[int], joined: JoinJob, keys: int) -> dict[Any, Any]:
    """Return what is held by state, partition number and key when all is read, as far as that follows from the input.

    Of who waits, how far on the record is, its time, until when it waits, and whether it has met another.
    """
    held: dict[Any, Any] = {}
    for number, (size, other_size) in enumerate(zip(sizes, other_sizes, strict=True)):
        state, _ = determined(*events_of(size, other_size, keys), joined)
        if joined.what == TABLE:
            held |= {(NAMES, number, b"k%d" % key): f"{at}" for key, at in state.table}
        elif joined.is_determined:
            for side, key, each in _held(state, joined):
                held.setdefault((side, number, b"k%d" % key), []).append(each)
    return held


def _held(state: State, joined: JoinJob) -> Iterator[tuple[str, int, Any]]:
    """Yield the state, the key, and what is held of it, one by one."""
    if joined.what == TABLES:
        yield from ((f"{BOTH}/left", key, value) for key, value in state.own)
        yield from ((f"{BOTH}/right", key, value) for key, value in state.table)
    for each in state.waiting:
        side = "waiting" if joined.what == AS_OF else "right" if each.is_other else "left"
        operator = VERSIONS if joined.what == AS_OF else PAIRS
        yield f"{operator}/{side}", each.key, (each.value, each.at, each.until, each.met)
    for key, at, value in state.versions:
        yield f"{VERSIONS}/versions", key, (value, at)
