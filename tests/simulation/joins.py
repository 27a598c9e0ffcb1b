"""A job that joins: what its records are, how it is put together, and which seeds play it.

    in    -> times -> asked (map_async) -> join with rates -> join with names, or with the other side -> the sinks
    other -> times -> news ------------------------------> table "names", or the other side
    rates -> broadcast table

The other side is a stream, within a time; a table, where both are; or a table as of the time of each record.

Of `other` some values are tombstones. Some calls of `asked` fail, some of them for good: that record is a dead letter
where the job has a sink for these, else it is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.simulation.async_client import Client
from tests.simulation.bad_records import DEAD, IntoDead
from twopc.error_policy import Skip
from twopc.graph import GraphBuilder
from twopc.operators import (
    AssignTimestamps,
    JoinBroadcast,
    JoinTable,
    KeepBroadcast,
    KeepTable,
    Map,
    MapAsync,
    MapRecords,
)
from twopc.operators.as_of_join import join_as_of
from twopc.operators.stream_join_step import JoinStreams
from twopc.operators.table_join import join_tables
from twopc.record import Record
from twopc.serde import Json
from twopc.sink import Sink
from twopc.source import Source

if TYPE_CHECKING:
    from tests.simulation.faults import Faults

TABLE, STREAMS, TABLES, AS_OF = "table", "streams", "tables", "as of"
TOLD, WAITS, OPEN = "told", "waits", "open"

RATES, RATES_SOURCE, NAMES, PAIRS = "rates", "rates-source", "names", "pairs"
BOTH, VERSIONS = "both", "as-of"
SOME_SINKS = (("out",), ("out", DEAD), ("out", "topic"))
SINKS = frozenset().union(*SOME_SINKS)
"""Those that the job may have."""

WITHIN_MS, GRACE_MS = 14, 15
KEEP_MS = 400
"""Longer than there are event times, so no record is too far behind: then it would depend on who is read first."""
IDLE_SECONDS = 0.5
"""Longer than the next record of a source may be on its way: see `tests.simulation.source`."""

SERDES = (Json(), Json())
CONCURRENCY, TIMEOUT_MS, RETRIES = 3, 100, 2
NOTHING = "-"


@dataclass(frozen=True, slots=True)
class JoinJob:
    """The kind of a join, and the order in which records of the two sources meet.

    With `told` readers say how far they are, with `waits` a source that seems to have nothing is waited for: the
    earlier record goes first then. With `open` neither, so any order is right that keeps that of each partition.
    """

    what: str
    how: str
    order: str

    @property
    def is_determined(self) -> bool:
        return self.order != OPEN


JOBS = tuple(
    (what, how, order)
    for what, hows in (
        (TABLE, ("inner", "left")),
        (STREAMS, ("inner", "left", "outer")),
        (TABLES, ("inner", "left", "outer")),
        (AS_OF, ("inner", "left")),
    )
    for how in hows
    for order in (TOLD, WAITS, OPEN)
)
"""All that such a job may be, in the words of `Faults.joins`."""

SIZES = range(6, 14)
"""How many records a partition may have."""


def joined_of(faults: Faults) -> JoinJob | None:
    """Return what the job joins; None for a job that doesn't, as one whose sources or sinks are other ones."""
    fits = len(faults.sizes) == len(faults.other_sizes) and SINKS.issuperset(faults.sinks) and not faults.input_grows_ms
    return JoinJob(*faults.joins) if faults.joins and fits else None


def idle_seconds(faults: Faults) -> float:
    """How long a source is waited for that seems to have nothing."""
    joined = joined_of(faults)
    return IDLE_SECONDS if joined is not None and joined.order == WAITS else 0.0


def offset_of(value: str) -> int:
    return int(value.split(":")[1])


def time_of(offset: int) -> int:
    """The event time of a record of `in`: some jump back."""
    return 100 + 10 * offset - (35 if offset % 5 == 3 else 0)


def other_time_of(offset: int) -> int:
    """The event time of a record of `other`, often that of the record of `in` with its key."""
    return 100 + 10 * offset + (0, 15, 5)[offset % 3] - (30 if offset % 7 == 5 else 0)


def timestamp(value: str) -> int:
    return time_of(offset_of(value))


def other_timestamp(value: str) -> int:
    return other_time_of(offset_of(value))


def is_tombstone(offset: int) -> bool:
    return offset % 4 == 3


def rate_of(value: str) -> bytes:
    """The key under which a record of `in` finds its rate."""
    return b"r%d" % (offset_of(value) // 2 % 3)


def rated(value: str, rate: str | None) -> str:
    return f"{value}:{rate or NOTHING}"


def named(value: str, name: str | None) -> str:
    return f"{value}:{name or NOTHING}"


def paired(left: str | None, right: str | None) -> str:
    """What two records make: lane, offset and rate of the one, and the offset of the other."""
    if left is None:
        assert right is not None, "one of two is there"
        number, offset = right.split(":")
        return f"{number}:{NOTHING}:{NOTHING}:{offset}"
    return f"{left}:{NOTHING if right is None else right.split(':')[1]}"


def shown(record: Record) -> Record:
    """What becomes of a row that is gone: a record with nothing of either side."""
    return record.replace(value=record.value or f"{record.partition}:{NOTHING}:{NOTHING}:{NOTHING}")


def news_of(sizes: Sequence[int], what: str) -> Callable[[str], str | None]:
    """Return what becomes of a value of `other`: where it goes is where that of `in` with its number goes."""

    def news(value: str) -> str | None:
        lane, offset = map(int, value.split(":"))
        if is_tombstone(offset):
            return None
        return f"{offset}" if what in (TABLE, AS_OF) else f"{lane - len(sizes)}:{offset}"

    return news


def add_joins(
    builder: GraphBuilder,
    sources: Mapping[str, Source],
    sinks: Mapping[str, Sink],
    joined: JoinJob,
    sizes: Sequence[int],
) -> str:
    """Add all of the job but its sinks; return where its output comes from."""
    policy = IntoDead(sinks[DEAD]) if DEAD in sinks else Skip()
    last = builder.add(AssignTimestamps(timestamp), (builder.add(sources["in"], (), "in", policy),))
    last = builder.add(MapAsync(Client(), CONCURRENCY, TIMEOUT_MS, RETRIES), (last,))
    table = builder.add(KeepBroadcast(RATES, Json()), (builder.add(sources[RATES_SOURCE], (), RATES_SOURCE),))
    last = builder.add(JoinBroadcast(rated, table, "left", rate_of), (last, table))
    other = builder.add(AssignTimestamps(other_timestamp), (builder.add(sources["other"], (), "other"),))
    other = builder.add(Map(news_of(sizes, joined.what)), (other,))
    how: Any = joined.how
    if joined.what == TABLE:
        names = builder.add(KeepTable(NAMES, Json()), (other,))
        return builder.add(JoinTable(named, names, how), (last, names))
    if joined.what == TABLES:
        return builder.add(MapRecords(shown), (builder.add(join_tables(paired, how, BOTH, SERDES), (last, other)),))
    if joined.what == AS_OF:
        return builder.add(join_as_of(named, how, VERSIONS, (KEEP_MS, GRACE_MS), SERDES), (last, other))
    return builder.add(JoinStreams(paired, how, WITHIN_MS, GRACE_MS, PAIRS, SERDES), (last, other))
