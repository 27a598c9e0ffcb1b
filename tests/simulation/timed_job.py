"""A job in which event time passes: an operator with windows or timers; or two, with the job's own topic between them.

    in -> timed -> the sinks
    in -> timed -> own ... own-source -> again -> the sinks

Before each operator a record is given its timestamp. What comes out is told as text, `number:key:time:stream:what`: the
partition number and the key that it has, its timestamp, of which of the operator's streams it is, and the rest. So the
second operator reads it as a record like any other. Records are ten milliseconds apart; some are behind their time,
some so far that they are late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from tests.simulation.faults import Faults
from tests.simulation.job import JOB, OWN, OWN_SOURCE, same
from twopc import Context, Hopping, Json, Processor, Record, Session, Sliding, Tumbling, ValueState
from twopc.graph import GraphBuilder, JobDefinition, Merge, Operator
from twopc.operators import AssignTimestamps, Map, MapRecords, Process
from twopc.operators.window_step import Aggregation, Count, Reduce, WindowAggregate
from twopc.sink import Sink
from twopc.source import Source
from twopc.windows import Windows

TIMED, AGAIN = "timed", "again"
"""The operators."""

SIZE_MS, HOP_MS, EVERY_MS, GAP_MS, SLIDE_MS = 20, 30, 10, 25, 25
GRACE_MS = {"tumbling": 10, "hopping": 10, "session": 30, "sliding": 15}
WAIT_MS, AT_ONCE_MS, CHAIN_MS, TTL_MS = 25, 5, 20, 45
FIRST_MS = 1_000

BEHIND = {"tumbling": "sliding", "hopping": "session", "session": "tumbling", "timers": "hopping", "sliding": "timers"}
"""What the second operator is behind each."""


def kinds_of(faults: Faults) -> dict[str, str]:
    """Return the operators of the job, in their order, and what each is."""
    first = {TIMED: faults.timed}
    return first | {AGAIN: BEHIND[faults.timed]} if OWN in faults.sinks else first


def timestamp(value: str) -> int:
    """Return when a record was, whether it is one of the input or was told."""
    number, at, *told = value.split(":")
    return int(told[0]) if told else _stamp(int(number), int(at))


def _stamp(lane: int, offset: int) -> int:
    place = offset + 2 * lane
    behind = 90 if place % 10 == 9 else 45 if place % 5 == 4 else -25 if place % 7 == 6 else 0
    return FIRST_MS + offset * 10 - behind


class Reminders(Processor):
    """Sets a timer behind each record; deletes the one before at each third, sets one that is due at each fourth."""

    seen = ValueState(Json())
    fired = ValueState(Json())
    last = ValueState(Json(), ttl=f"{TTL_MS}ms")

    def __init__(self, cut: Callable[[], None] = lambda: None) -> None:
        self._cut = cut

    def process(self, record: Record, context: Context) -> Iterator[Record]:
        self._cut()
        at, before, seen = timestamp(record.value), self.last.get(), (self.seen.get() or 0) + 1
        self.seen.set(seen)
        self.last.set(at + WAIT_MS)
        if seen % 3 == 0 and before is not None:
            context.delete_timer(before)
        context.set_timer(at + WAIT_MS)
        if seen % 4 == 0:
            context.set_timer(at - AT_ONCE_MS)
        yield record.replace(value=f"{before}/{seen}")

    def on_timer(self, at: int, context: Context) -> Record:
        fired = (self.fired.get() or 0) + 1
        self.fired.set(fired)
        if fired % 2:
            context.set_timer(at + CHAIN_MS)
        return Record(context.key, f"timer/{fired}", at)


def put_together(held: str, value: str) -> str:
    """What a window comes to: all that is in it, in the order in which it came."""
    return f"{held}+{value}"


def timed_graph(faults: Faults, sources: Mapping[str, Source], sinks: Mapping[str, Sink]) -> JobDefinition:
    """Return the job that reads these sources and writes to these sinks."""
    builder = GraphBuilder(JOB)
    kinds = kinds_of(faults)
    last = _timed(builder, builder.add(sources["in"], (), "in"), TIMED, kinds[TIMED], is_last=OWN not in sinks)
    if OWN in sinks:
        written = builder.add(sinks[OWN], (last,), OWN)
        read = builder.append(Operator(OWN_SOURCE, (), sources[OWN_SOURCE], behind=written))
        last = _timed(builder, read, AGAIN, kinds[AGAIN], is_last=True)
    for name, sink in sinks.items():
        if name != OWN:
            builder.add(sink, (last,), name)
    return builder.definition()


def _timed(builder: GraphBuilder, last: str, name: str, kind: str, *, is_last: bool) -> str:
    """Add an operator with its time; of windows that another reads, what is final and what was late."""
    last = builder.add(Map(same), (builder.add(AssignTimestamps(timestamp), (last,)),))
    if kind == "timers":
        return builder.add(MapRecords(_telling(kind)), (builder.add(Process(Reminders(), name), (last,)),))
    windows, aggregation = _windows_of(kind)
    builder.add(WindowAggregate(windows, GRACE_MS[kind], aggregation, name, Json()), (last,))
    streams = ("final", "current", "late") if is_last else ("final", "late")
    each = [builder.add(MapRecords(_telling(stream)), (f"{name}.{stream}",)) for stream in streams]
    return builder.add(Merge(), tuple(each))


def _windows_of(kind: str) -> tuple[Windows, Aggregation]:
    match kind:
        case "tumbling":
            return Tumbling(f"{SIZE_MS}ms"), Count()
        case "hopping":
            return Hopping(f"{HOP_MS}ms", every=f"{EVERY_MS}ms"), Reduce(put_together)
        case "sliding":
            return Sliding(f"{SLIDE_MS}ms"), Reduce(put_together)
        case _:
            return Session(gap=f"{GAP_MS}ms"), Reduce(put_together)


@cache
def _telling(stream: str) -> Callable[[Record], Record]:
    def tell(record: Record) -> Record:
        value = record.value
        what = value if isinstance(value, str) else f"{value.start}-{value.end}={value.value}"
        assert record.timestamp is not None
        return record.replace(value=told(record.partition, record.key, record.timestamp, stream, what))

    return tell


def told(number: int, key: bytes, at: int, stream: str, what: str) -> str:
    """Return what comes out as text."""
    return f"{number}:{key[1:].decode()}:{at}:{stream}:{what}"


def by_stream(values: Iterable[str]) -> dict[str, list[str]]:
    """Return what was told of each stream: nothing says in which order two of them stand to one another."""
    streams: dict[str, list[str]] = {}
    for value in values:
        streams.setdefault(value.split(":")[3], []).append(value)
    return streams
