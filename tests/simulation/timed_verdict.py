"""The verdict on a job in which time passes, `tests.simulation.timed_job`: its output and its state in the end.

What an operator makes follows from its records, and from where between them a drain has let time pass. A drain that
somebody asked for may have done so, once in each attempt, where that attempt was told to read no further: whether its
last words are in a completed checkpoint is not told. One that the job has ended with has, behind the last record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from struct import Struct
from typing import Any

import orjson

from tests.simulation.job import INPUTS, KAFKA_TOPICS, KEYS, OWN, OWN_SOURCE
from tests.simulation.own_text import mark_of, plain_text, told_time
from tests.simulation.run import Simulation
from tests.simulation.timed_job import AGAIN, TIMED, TTL_MS, by_stream, kinds_of, timestamp
from tests.simulation.timed_output import Came, Drained, Event, Marked, Operated, Reminded, Windowed
from tests.simulation.timed_sliding import Slid
from twopc.kafka.topic_partition import TopicPartition
from twopc.state.layout import StateName

_TIME = Struct(">q")
_WINDOW = Struct(">qqI")


@dataclass(slots=True)
class HeldState:
    """The state of an operator under a number in a checkpoint: states by name and key, and the entries by key."""

    now: int | None = None
    told: int | None = None
    open: int = 0
    states: dict[tuple[str, bytes], Any] = field(default_factory=dict)
    timers: dict[bytes, set[int]] = field(default_factory=dict)
    expiries: set[tuple[int, bytes]] = field(default_factory=set)

    def is_of(self, operator: Operated) -> bool:
        """Whether this is what such an operator holds, no more and no less."""
        last = {key: held for (name, key), held in self.states.items() if name == "last"}
        return (
            (self.now, self.told) == (operator.now, operator.told_up_to)
            and self.open == self._number_of_windows()
            and self.states == operator.states()
            and operator.may_wait(self.timers)
            and self.expiries == {(written + TTL_MS, key) for key, (_, written) in last.items()}
        )

    def _number_of_windows(self) -> int:
        lists = (held for held in self.states.values() if isinstance(held, list))
        # What ends before it starts is remembered of others.
        return sum(start <= end for windows in lists for start, end, _ in windows)


def judge_timed_output(run: Simulation) -> None:
    """Enter what was told and should not be, or the other way round."""
    for name, number in _operators(run):
        if _explanations(run, name, number):
            continue
        expected = min(_possible(run, name, number), key=lambda each: len(each.lines))
        run.world.violated(
            "output is not exactly once",
            f"{name} {number}: told {_seen(run, name, number)}, and without a drain more than there must have been "
            f"{_told(run, name, expected)}",
        )


def judge_no_more_told(run: Simulation) -> None:
    """Enter what was told and can't be, of a run that did not come to its end."""
    for name, number in _operators(run):
        possible = [set(each.lines) for each in _possible(run, name, number)]
        for sink in _sinks(run, name):
            visible = _visible(run, sink, number)
            if len(set(visible)) != len(visible) or not any(set(visible) <= each for each in possible):
                run.world.violated("output holds more than the input made", f"{sink}, {number}: {visible}")


def judge_timed_states(run: Simulation, stored: Iterable[tuple[StateName, int, bytes, bytes]]) -> None:
    """Enter what the last checkpoint holds that does not go with what was told."""
    held = _held(stored, kinds_of(run.world.faults))
    for name, number in _operators(run):
        found = held.pop((name, number), HeldState())
        explanations = _explanations(run, name, number)
        if not any(found.is_of(each) for each in explanations):
            run.world.violated("the last checkpoint's state is wrong", f"{name} {number}: {found} of {explanations}")
    for number in range(len(run.broker.lanes)) if OWN in run.world.faults.sinks else ():
        for name, time in ((OWN, _sent_up_to(run, number)), (OWN_SOURCE, _marked_up_to(run, number))):
            if (found := held.pop((name, number), HeldState())) != HeldState(now=time):
                run.world.violated("the last checkpoint's state is wrong", f"{name} {number}: {found}, not {time}")
    if held:
        run.world.violated("the last checkpoint's state is wrong", f"nobody's: {held}")


def _sent_up_to(run: Simulation, number: int) -> int | None:
    """Return the time of what was written to the job's own topic from a number."""
    return max(map(timestamp, run.broker.read_committed(KAFKA_TOPICS[OWN], number)), default=None)


def _marked_up_to(run: Simulation, number: int) -> int | None:
    """Return the time of the last mark in a partition of it."""
    log = run.broker.partition_log(TopicPartition(KAFKA_TOPICS[OWN], number)).committed()
    return max((time for _, value in log if (time := mark_of(value)) is not None), default=None)


def _operators(run: Simulation) -> list[tuple[str, int]]:
    names = kinds_of(run.world.faults)
    return [(name, number) for name in names for number in range(len(run.broker.lanes))]


def _explanations(run: Simulation, name: str, number: int) -> list[Operated]:
    """Return the ways in which all comes to be that the sinks hold."""
    seen = _seen(run, name, number)
    return [each for each in _possible(run, name, number) if _told(run, name, each) == seen]


def _seen(run: Simulation, name: str, number: int) -> dict[str, dict[str, list[str]]]:
    return {sink: by_stream(_visible(run, sink, number)) for sink in _sinks(run, name)}


def _told(run: Simulation, name: str, operator: Operated) -> dict[str, dict[str, list[str]]]:
    """Return what the sinks hold of what this one has told."""
    streams = by_stream(operator.lines)
    taken = {stream: lines for stream, lines in streams.items() if stream != "current" or _is_last(run, name)}
    return dict.fromkeys(_sinks(run, name), taken)


def _is_last(run: Simulation, name: str) -> bool:
    return name == AGAIN or OWN not in run.world.faults.sinks


def _sinks(run: Simulation, name: str) -> list[str]:
    return [sink for sink in run.world.faults.sinks if (sink != OWN) == _is_last(run, name)]


def _visible(run: Simulation, sink: str, number: int) -> list[str]:
    topic = KAFKA_TOPICS.get(sink)
    return run.files.read(number) if topic is None else run.broker.read_committed(topic, number)


def _possible(run: Simulation, name: str, number: int) -> Iterator[Operated]:
    """Yield what the operator may have come to, for all the places at which time may have passed."""
    kind = kinds_of(run.world.faults)[name]
    records, drains = _records(run, name, number)
    must = {len(records)} if run.world.faults.ends_drained and run.driver.done else set()
    places = sorted({*drains, *must})
    for times in product(*(range(place in must, max(drains[place], place in must) + 1) for place in places)):
        events: list[Event] = list(records)
        for place, count in reversed(list(zip(places, times, strict=True))):
            events[place:place] = [Drained()] * count
        yield _begun(kind, name, number).after(events)


def _begun(kind: str, name: str, number: int) -> Operated:
    """Return an operator of this kind and name, with nothing under this number yet."""
    by_marks = name == AGAIN
    match kind:
        case "timers":
            return Reminded(number, by_marks=by_marks)
        case "sliding":
            return Slid(number, by_marks=by_marks, name=name)
        case _:
            return Windowed(number, by_marks=by_marks, kind=kind, name=name)


def _records(run: Simulation, name: str, number: int) -> tuple[list[Came | Marked], Counter[int]]:
    """Return what comes to an operator, and behind how many of that how many attempts may have let time pass."""
    topic = INPUTS["in"] if name == TIMED else KAFKA_TOPICS[OWN]
    partition = TopicPartition(topic, number)
    stops = [
        stop
        for (attempt, each), stop in run.broker.bounded.items()
        if each == partition and attempt in run.folder.draining
    ]
    if name == TIMED:
        values = [(at, f"{number}:{at}") for at in range(run.broker.lanes[partition])]
    else:
        values = run.broker.partition_log(partition).committed()
    return [_came(value) for _, value in values], Counter(sum(at < stop for at, _ in values) for stop in stops)


def _came(value: str) -> Came | Marked:
    if (time := mark_of(value)) is not None:
        return Marked(time)
    return Came(b"k%d" % (int(value.split(":")[1]) % KEYS), plain_text(value), told_time(value))


def _held(
    stored: Iterable[tuple[StateName, int, bytes, bytes]], kinds: Mapping[str, str]
) -> dict[tuple[str, int], HeldState]:
    """Return what is stored, by operator and number."""
    held: dict[tuple[str, int], HeldState] = {}
    for state, number, key, value in stored:
        each = held.setdefault((state.operator, number), HeldState())
        match state.name:
            case "$stream-time":
                each.now = int(value)
            case "$told":
                each.told = int(value)
            case "$open-windows":
                each.open = int(value)
            case "$timers":
                at, whose = _entry(key)
                each.timers.setdefault(whose, set()).add(at)
            case "$expiries":
                at, whose = _entry(key)
                each.expiries.add((at, whose.partition(b"\0")[2]))
            case "last":
                each.states["last", key] = orjson.loads(value[_TIME.size :]), _TIME.unpack_from(value)[0]
            case name if name == state.operator:
                each.states[name, key] = list(_windows(value, kinds[name]))
            case name:
                each.states[name, key] = orjson.loads(value)
    return held


def _entry(key: bytes) -> tuple[int, bytes]:
    """Return the time of an entry in a time queue, and what is due."""
    return int.from_bytes(key[: _TIME.size]) - 2**63, key[_TIME.size :]


def _windows(value: bytes, kind: str) -> Iterator[tuple[int, int, Any]]:
    """Yield the open windows; before what is in one that slides stands the time of its last record."""
    before = _WINDOW.size + (_TIME.size if kind == "sliding" else 0)
    while value:
        start, end, size = _WINDOW.unpack_from(value)
        behind = _WINDOW.size + size
        if start <= end:
            yield start, end, orjson.loads(value[before:behind])
        value = value[behind:]
