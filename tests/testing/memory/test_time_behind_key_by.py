"""Event time behind a `key_by`: how far it has come where records come from, in whatever order they are read there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from twopc import (
    Context,
    Job,
    Json,
    KafkaSink,
    KafkaSource,
    Processor,
    Record,
    Serde,
    Session,
    String,
    Tumbling,
    ValueState,
)
from twopc.errors import CheckpointDeclined
from twopc.testing import MemoryRun

SIZE, GRACE = 100, 10


def with_key(record: Record) -> Record:
    return record.replace(value=[record.key, record.value.start, record.value.value])


def counted(partitions: int | None = None) -> Job:
    """Return a job that counts by a new key in windows, and tells what was late."""
    job = Job("counted")
    numbers = job.source(KafkaSource("in", value=Json()))
    keyed = numbers.key_by(lambda value: value["key"], name="by-key", partitions=partitions)
    windows = keyed.window(Tumbling(f"{SIZE}ms"), grace=f"{GRACE}ms").count(name="count")
    windows.final().map_records(with_key).sink(KafkaSink("out", value=Json()))
    windows.late().map(lambda value: value["at"]).sink(KafkaSink("late", value=Json()))
    return job


def send(run: MemoryRun, at: int, partition: int, key: str = "k") -> None:
    run.send("in", {"key": key, "at": at}, timestamp=at, partition=partition)


def values(run: MemoryRun, topic: str) -> list[Any]:
    return [record.value for record in run.read(topic)]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_nothing_of_a_backlog_is_late_though_one_partition_is_read_before_the_other(parallelism: int) -> None:
    with MemoryRun(counted(), partitions=2, parallelism=parallelism) as run:
        for partition in range(2):
            for at in range(0, 1_001, 10):
                send(run, at + 1, partition)
        run.checkpoint()
        assert values(run, "late") == []
        assert values(run, "out") == [["k", start, 20] for start in range(0, 900, 100)]


def test_a_record_is_late_where_it_would_be_late_before_the_key_by() -> None:
    with MemoryRun(counted(), partitions=2) as run:
        for at in (50, 111, 60):
            send(run, at, 0)
        for at in (55, 70):
            send(run, at, 1)
        run.checkpoint()
        assert values(run, "late") == [60]
        send(run, 300, 1)
        send(run, 300, 0)
        run.checkpoint()
        assert values(run, "out") == [["k", 0, 3], ["k", 100, 1]]


def test_a_partition_without_records_holds_nobody_up() -> None:
    with MemoryRun(counted(partitions=3), partitions=2) as run:
        for at in (50, 210):
            send(run, at, 0)
        run.checkpoint()
        assert values(run, "out") == [["k", 0, 1]]


def test_time_comes_to_every_partition_behind_it() -> None:
    with MemoryRun(counted(partitions=3)) as run:
        keys = "abcdefgh"
        for key in keys:
            send(run, 50, 0, key)
        send(run, 210, 0)
        run.checkpoint()
        assert sorted(values(run, "out")) == [[key, 0, 1] for key in keys]


def test_what_tells_time_is_no_record_and_no_header_to_a_function() -> None:
    seen: list[Record] = []

    def see(record: Record) -> bool:
        seen.append(record)
        return True

    job = Job("seen")
    keyed = job.source(KafkaSource("in")).key_by(lambda value: value, name="by-key")
    seeing = keyed.filter_records(see)
    seeing.window(Tumbling("1s")).count(name="count").final().map(str).sink(KafkaSink("out", value=String()))
    with MemoryRun(job) as run:
        for at, headers in ((2_000, None), (1_500, None), (1_600, [("own", b"1")])):
            run.send("in", b"k", timestamp=at, headers=headers)
        run.checkpoint()
        run.checkpoint()
    assert [(record.value, record.headers) for record in seen] == [(b"k", None), (b"k", None), (b"k", [("own", b"1")])]


def test_time_goes_through_one_key_by_after_the_other() -> None:
    job = Job("twice")
    first = job.source(KafkaSource("in", value=Json())).key_by(lambda value: value["at"] % 7, name="first")
    second = first.key_by(lambda value: "all", name="second")
    windows = second.window(Tumbling("100ms"), grace="10ms").count(name="count")
    windows.final().map(lambda window: [window.start, window.value]).sink(KafkaSink("out", value=Json()))
    windows.late().sink(KafkaSink("late", value=Json()))
    with MemoryRun(job, partitions=3, parallelism=2) as run:
        for partition in range(3):
            for at in range(1, 500, 10):
                send(run, at, partition)
        run.checkpoint()
        assert values(run, "late") == []
        assert values(run, "out") == [[start, 30] for start in range(0, 400, 100)]


def test_a_record_is_late_behind_two_of_them_where_it_would_be_late_before_the_first() -> None:
    job = Job("twice")
    first = job.source(KafkaSource("in", value=Json())).key_by(lambda value: value["at"] % 7, name="first")
    windows = first.key_by(lambda value: "all", name="second").window(Tumbling("100ms")).count(name="count")
    windows.final().map(lambda window: [window.start, window.value]).sink(KafkaSink("out", value=Json()))
    windows.late().map(lambda value: value["at"]).sink(KafkaSink("late", value=Json()))
    with MemoryRun(job, partitions=2) as run:
        for at in (50, 120, 60, 300):
            send(run, at, 0)
        run.checkpoint()
        assert values(run, "late") == [60]
        assert values(run, "out") == [[0, 1], [100, 1]]


class TextOnly(Serde):
    """A key that can't say that there is none."""

    def serialize(self, value: Any) -> bytes:
        return bytes(value.encode())

    def deserialize(self, data: bytes | None) -> Any:
        return None if data is None else data.decode()


def test_a_serde_of_keys_that_takes_no_none_is_named() -> None:
    job = Job("text")
    keyed = job.source(KafkaSource("in")).key_by(lambda value: "k", name="by-key", key=TextOnly())
    keyed.window(Tumbling("100ms")).count(name="count").final().map(str).sink(KafkaSink("out", value=String()))
    with MemoryRun(job) as run:
        run.send("in", b"v", timestamp=50)
        with pytest.raises(CheckpointDeclined, match=r"the mark of time for partition 0: encoding a key .* failed"):
            run.checkpoint()


def test_behind_two_of_them_the_least_time_of_both_counts() -> None:
    job = Job("both")
    of = {}
    for name in "ab":
        of[name] = job.source(KafkaSource(name, value=Json())).key_by(lambda value: "k", name=f"{name}-by-key")
    joined = of["a"].join(of["b"], lambda a, b: [a, b], within="50ms", how="outer", name="both", grace="0ms")
    joined.sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        run.send("a", 1, timestamp=100)
        run.send("b", 2, timestamp=140)
        run.send("a", 3, timestamp=1_000)
        run.checkpoint()
        assert values(run, "out") == [[1, 2]]
        run.send("b", 4, timestamp=500)
        run.send("b", 5, timestamp=1_600)
        run.send("a", 6, timestamp=1_600)
        run.checkpoint()
        assert sorted(values(run, "out"), key=str) == [[3, None], [6, 5], [None, 4]]


def test_a_session_begins_before_the_first_mark() -> None:
    job = Job("visits")
    keyed = job.source(KafkaSource("in", value=Json())).key_by(lambda value: value["key"], name="by-key")
    visits = keyed.window(Session(gap="50ms"), grace="0ms").count(name="count").final()
    visits.map(lambda visit: [visit.start, visit.end, visit.value]).sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        for at in (10, 40, 300):
            send(run, at, 0)
        run.checkpoint()
        assert values(run, "out") == [[10, 40, 2]]


class Once(Processor):
    """Passes the first record of each key in 100 ms."""

    seen = ValueState(Json(), ttl="100ms")

    def process(self, record: Record, context: Context) -> Record | None:
        if self.seen.get():
            return None
        self.seen.set(True)
        return record


def test_what_lives_for_a_time_lives_from_the_record_that_wrote_it() -> None:
    job = Job("once")
    keyed = job.source(KafkaSource("in", value=Json())).key_by(lambda value: value["key"], name="by-key")
    keyed.process(Once(), name="once").map(lambda value: value["at"]).sink(KafkaSink("out", value=Json()))
    with MemoryRun(job, partitions=2) as run:
        send(run, 1, 1, "other")
        for at in (1_000, 1_050, 1_100, 1_150):
            send(run, at, 0)
        run.checkpoint()
        assert values(run, "out") == [1, 1_000, 1_100]


class Sent(NamedTuple):
    """A record of the input, and whether it is behind its time by more than the grace."""

    at: int
    partition: int
    key: str
    late: bool


def some_input(random: Random) -> Iterator[Sent]:
    """Yield records as they are produced: each at most the grace behind those before it, or late in its partition."""
    clock, newest = 1_000, [0, 0, 0]
    for _ in range(150):
        clock += random.randrange(12)
        partition, key = random.randrange(3), random.choice("abc")
        at = clock - random.randrange(GRACE)
        if random.random() < 0.1:
            early = at - random.randrange(2 * SIZE, 4 * SIZE)
            if early // SIZE * SIZE + SIZE + GRACE <= newest[partition]:
                yield Sent(early, partition, key, late=True)
                continue
        newest[partition] = max(newest[partition], at)
        yield Sent(at, partition, key, late=False)


@pytest.mark.parametrize("seed", range(8))
def test_an_input_read_at_once_and_one_read_as_it_comes_with_crashes_make_the_same(seed: int) -> None:
    random = Random(seed)
    sent = list(some_input(random))
    expected = Counter((each.key, each.at // SIZE * SIZE) for each in sent if not each.late)
    now = max(each.at for each in sent)
    windows = sorted([key, start, count] for (key, start), count in expected.items() if start + SIZE + GRACE <= now)
    late = sorted(each.at for each in sent if each.late)
    for at_once in (True, False):
        with MemoryRun(counted(partitions=2), partitions=3, parallelism=2) as run:
            for each in sorted(sent, key=lambda each: each.partition) if at_once else sent:
                send(run, each.at, each.partition, each.key)
                if not at_once and random.random() < 0.05:
                    run.crash() if random.random() < 0.5 else run.checkpoint()
            run.checkpoint()
            assert sorted(values(run, "late")) == late
            assert sorted(values(run, "out")) == windows
