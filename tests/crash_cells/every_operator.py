"""The other operators of the drills' job, beside the one that counts: one of each kind, and dead letters.

All of their output goes to one topic, as lists: the operator's name and its result. `expected_output.py` computes them.

A process is hit in a user's function where DRILL_MOMENT names one of the moments, once: DRILL_STRUCK is the file that
says so.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from twopc import (
    Context,
    DeadLetter,
    Hopping,
    Int,
    Job,
    Json,
    KafkaSink,
    KafkaSource,
    ListState,
    MapState,
    Processor,
    Record,
    Session,
    Sliding,
    Stream,
    Tumbling,
    ValueState,
)

NOON_MS = 1_700_000_040_000
"""The event time of the record with the number 0; a window begins here."""
RECORD_MS = 1_000
RUN, EARLIER_MS = 100, 200_000
"""Of three runs of so many records two happened so long before their turn: some are late, some meet an open window."""
WINDOW_MS, GRACE_MS = 120_000, 30_000
HOP_MS = 60_000
SESSION_GAP_MS = 45_000
SLIDING_MS, SLIDING_GRACE_MS = 50_000, 250_000
"""No record comes later than that, so what a sliding window holds follows from the times alone."""
WITHIN_MS, PAIR_GRACE_MS = 40_000, 180_000
"""How far apart a number and a change may be that make a pair, and how much longer each of them waits."""
TIMER_MS = 60_000
DELETED = 7
"""At every so many-th record of a key the timer that it sets is deleted again."""
FULL, LAST = 3, 3
"""So many even or odd numbers are told of, and so many numbers are kept."""
MAP_TTL_MS = 100_000
"""Less than what passes while time stands, in the runs that happened before."""
EVERY = 3
"""One record of so many goes to them: what they do for each takes longer than counting it."""
REFUSED = 31
"""Every so many-th of those is a dead letter."""
RESTS = 7
SLOW_CALLS = 16
"""Every so many-th call waits."""


def event_time(number: int) -> int:
    """When a record happened, in Unix milliseconds."""
    return NOON_MS + number * RECORD_MS - (EARLIER_MS if number // RUN % 3 else 0)


def next_timer(at: int) -> int:
    return at // TIMER_MS * TIMER_MS + TIMER_MS


class Moments:
    """The moments in a user's function at which a process is hit, if it was told to be."""

    def __init__(self) -> None:
        self._moment = os.environ.get("DRILL_MOMENT", "")
        self._from = int(os.environ.get("DRILL_MOMENT_FROM", "0"))

    def reached(self, moment: str, number: int) -> None:
        """Say that this moment was reached with this record, or at this time."""
        if moment != self._moment or number < self._from:
            return
        try:
            with Path(os.environ["DRILL_STRUCK"]).open("x") as file:
                file.write(f"{os.getpid()}\n")
        except FileExistsError:
            return
        os.kill(os.getpid(), int(os.environ["DRILL_SIGNAL"]))


CHANGES, NAMES, TOLD, DEAD = "DRILL_CHANGES", "DRILL_NAMES", "DRILL_TOLD", "DRILL_DEAD"

moments = Moments()


async def ask(number: int) -> int:
    """Wait for nobody, now and then for long; refuse some."""
    await asyncio.sleep(0.0 if number % SLOW_CALLS else 0.002)
    moments.reached("call", number)
    if number % REFUSED == 0:
        raise LookupError(f"{number} is refused")
    return number


def count_rest(total: int | None, number: int) -> tuple[int, list[Any]]:
    """Count what comes to a rest from all input partitions."""
    moments.reached("behind key_by", number)
    total = (total or 0) + 1
    return total, ["rest", number, total]


def joined(number: int, change: int | None) -> list[Any]:
    return ["joined", number, change]


def paired(number: int, change: int | None) -> list[Any]:
    return ["pair", number, change]


def named(number: int, name: str) -> list[Any]:
    return ["named", number, name]


class Timed(Processor):
    """Counts, and tells at the next full minute of event time how far it was."""

    seen = ValueState(Json())

    def process(self, record: Record, context: Context) -> Iterator[Record]:
        seen = (self.seen.get() or 0) + 1
        self.seen.set(seen)
        assert context.timestamp is not None
        context.set_timer(at := next_timer(context.timestamp))
        if seen % DELETED == 0:
            context.delete_timer(at)
        yield record

    def on_timer(self, at: int, context: Context) -> Record:
        moments.reached("timer", at)
        return Record(context.key, ["timer", at, self.seen.get()])


class Kept(Processor):
    """Keeps the last numbers of a key, and how many even and odd ones: the side output has which are full."""

    outputs = ("full",)
    last = ListState(Int())
    of_parity = MapState(Int(), ttl=f"{MAP_TTL_MS}ms")

    def process(self, record: Record, context: Context) -> Record:
        parity = str(record.value % 2)
        count = (self.of_parity.get(parity) or 0) + 1
        if count < FULL:
            self.of_parity.put(parity, count)
        else:
            self.of_parity.remove(parity)
            context.output("full", record.replace(value=["full", record.value, sorted(self.of_parity.keys())]))
        last = [*self.last.get(), record.value][-LAST:]
        self.last.set(last)
        return record.replace(value=["kept", *last])


def final(window: Any) -> list[Any]:
    moments.reached("final window", window.end)
    return ["final", window.start, window.value]


def final_of(kind: str) -> Callable[[Any], list[Any]]:
    return lambda window: [kind, window.start, window.value]


def read(job: Job, source: KafkaSource) -> Stream:
    """Read the numbers, with the times at which they happened."""
    dead = DeadLetter(os.environ[DEAD])
    return job.source(source, timestamp=lambda value: event_time(int(value)), on_error=dead)


def add_operators(job: Job, numbers: Stream) -> None:
    """Add one operator of each kind behind the numbers."""
    numbers = numbers.map(int).filter(lambda number: number % EVERY == 0)
    told = KafkaSink(os.environ[TOLD], value=Json())
    changes = job.source(KafkaSource(os.environ[CHANGES], value=Json()))
    timed = numbers.join(changes.table("changes"), joined, how="left").process(Timed(), name="timed")
    within, grace = f"{WITHIN_MS}ms", f"{PAIR_GRACE_MS}ms"
    pairs = numbers.join(changes, paired, how="left", within=within, grace=grace, name="pairs")
    names = job.source(KafkaSource(os.environ[NAMES], value=Json())).table("names", broadcast=True)
    with_name = numbers.join(names, named, key=lambda number: b"%d" % (number % RESTS))
    windows = numbers.window(Tumbling(f"{WINDOW_MS}ms"), grace=f"{GRACE_MS}ms").count(name="windows")
    late = windows.late().map(lambda number: ["late", number])
    kept = numbers.process(Kept(), name="kept")
    others: dict[str, tuple[Hopping | Session | Sliding, int]] = {
        "hopping": (Hopping(f"{WINDOW_MS}ms", every=f"{HOP_MS}ms"), GRACE_MS),
        "session": (Session(f"{SESSION_GAP_MS}ms"), GRACE_MS),
        "sliding": (Sliding(f"{SLIDING_MS}ms"), SLIDING_GRACE_MS),
    }
    closed = (
        numbers.window(kind, grace=f"{grace_ms}ms").count(name=name).final().map(final_of(name))
        for name, (kind, grace_ms) in others.items()
    )
    every = (windows.final().map(final), late, pairs, with_name, kept, kept.side_output("full"), *closed)
    timed.merge(*every).sink(told, name="told")
    asked = numbers.map_async(ask).key_by(lambda number: number % RESTS, name="by-rest")
    asked.stateful_map(count_rest, name="rests").sink(
        KafkaSink(os.environ[TOLD], key=Json(), value=Json()), name="rests-told"
    )
