"""A job whose records and timers go wrong now and then, and what each of its sinks must hold in the end.

    in -> assign_timestamps -> map -> count -> alarms -> the sinks, of which `dead` takes what went wrong

Each place fails on records of its own, behind all that it has changed. Event time is ten milliseconds a record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from twopc import Context, Json, Processor, Record, ValueState
from twopc.error_policy import ErrorPolicy
from twopc.record import Batch, RecordError
from twopc.sink import Sink

DEAD = "dead"
"""The sink of dead letters."""

ALARMS = "alarms"
EVERY = 6
_FAILS_IN = {1: "map", 2: "count", 4: "alarms"}
RECORD_MS = 10
ALARM_MS = 25
TTL_MS = 45
"""A key comes every third record: one that failed is outlived, one that did not is not."""


@dataclass(frozen=True)
class IntoDead(ErrorPolicy):
    """What went wrong goes to a sink of the simulation's own."""

    sink: Sink = field(compare=False)

    @property
    def sink_id(self) -> str:
        return DEAD

    def dead_letter_sink(self, sinks: Iterable[Sink]) -> Sink:
        return self.sink

    def dead_letter(self, job: str, error: RecordError, sink: Sink) -> Batch:
        row = error.row
        return Batch([row], [row.value() or f"{row.partition()}:{row.key().decode()}:{row.offset()}"])


def fails_in(place: str, offset: int) -> bool:
    return _FAILS_IN.get(offset % EVERY) == place


def timestamp(value: str) -> int:
    return int(value.split(":")[1]) * RECORD_MS


def mapped(value: str) -> str:
    if fails_in("map", int(value.split(":")[1])):
        raise LookupError(value)
    return value


def counted(state: int | None, value: str) -> tuple[int, str]:
    if fails_in("count", int(value.split(":")[1])):
        raise LookupError(value)
    seen = (state or 0) + 1
    return seen, f"{value}:{seen}"


def _nothing() -> None:
    """A batch is not cut."""


class Alarms(Processor):
    """Marks each record with the one before it, if that is not too old, and says so when a key was quiet."""

    last = ValueState(Json(), ttl=f"{TTL_MS}ms")
    alarms = ValueState(Json())

    def __init__(self, cut: Callable[[], None] = _nothing) -> None:
        self._cut = cut

    def process(self, record: Record, context: Context) -> Iterator[Record]:
        self._cut()
        offset = int(record.value.split(":")[1])
        before = self.last.get()
        self.last.set(offset)
        context.set_timer(offset * RECORD_MS + ALARM_MS)
        yield record.replace(value=f"{record.value}:{'-' if before is None else before}")
        if fails_in("alarms", offset):
            raise LookupError(record.value)

    def on_timer(self, at: int, context: Context) -> Record:
        alarms = (self.alarms.get() or 0) + 1
        self.alarms.set(alarms)
        if _fails_at(at):
            raise LookupError(at)
        return Record(context.key, f"{context.partition}:{at}:{alarms}:alarm")


def _fails_at(at: int) -> bool:
    return (at - ALARM_MS) // RECORD_MS % EVERY == 0


@cache
def everything(lane: int, records: int, keys: int) -> tuple[Sequence[str], Sequence[str]]:
    """Return what comes out of a lane with so many records, and what goes wrong: worked out with nothing of twopc."""
    output: list[str] = []
    dead: list[str] = []
    seen: Counter[int] = Counter()
    alarms: Counter[int] = Counter()
    last: dict[int, int] = {}
    timers: set[tuple[int, int]] = set()
    for offset in range(records):
        key, now, value = offset % keys, offset * RECORD_MS, f"{lane}:{offset}"
        if fails_in("map", offset) or fails_in("count", offset):
            dead.append(value)
            continue
        seen[key] += 1
        for at, of in sorted(due for due in timers if due[0] <= now):
            timers.remove((at, of))
            if _fails_at(at):
                dead.append(f"{lane}:k{of}:{offset}")
            else:
                alarms[of] += 1
                output.append(f"{lane}:{at}:{alarms[of]}:alarm")
        if fails_in("alarms", offset):
            dead.append(value)
            continue
        is_known = key in last and last[key] * RECORD_MS + TTL_MS > now
        output.append(f"{value}:{seen[key]}:{last[key] if is_known else '-'}")
        last[key] = offset
        timers.add((now + ALARM_MS, key))
    return tuple(output), tuple(dead)


def states(size: int, keys: int) -> dict[tuple[str, bytes], Any]:
    """Return what `count` holds of each key of a partition with so many records."""
    good = (offset for offset in range(size) if not fails_in("map", offset) and not fails_in("count", offset))
    return {("count", b"k%d" % key): number for key, number in Counter(offset % keys for offset in good).items()}
