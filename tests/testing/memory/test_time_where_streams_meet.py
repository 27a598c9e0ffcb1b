"""Event time where a stream meets one that came through a `key_by`: as far as both have come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

import pytest

from tests.testing.memory.test_time_behind_key_by import GRACE, SIZE, values, with_key
from twopc import Job, Json, KafkaSink, KafkaSource, Stream, String, Tumbling
from twopc.kafka.topics.partitioner import partition_for
from twopc.testing import MemoryRun

PARTITIONS = 3


def streams(job: Job, timestamp: Callable[[Any], int] | None = None) -> tuple[Stream, Stream]:
    """Return one that comes through a `key_by`, and one that is read by the same key."""
    other = job.source(KafkaSource("other", value=Json()), name="other")
    plain = job.source(KafkaSource("plain", key=String(), value=Json()), name="plain", timestamp=timestamp)
    return other.key_by(lambda value: value["key"], name="by-key", key=String()), plain


def count(stream: Stream) -> None:
    windows = stream.window(Tumbling(f"{SIZE}ms"), grace=f"{GRACE}ms").count(name="count")
    windows.final().map_records(with_key).sink(KafkaSink("out", value=Json()))
    windows.late().map(lambda value: value["at"]).sink(KafkaSink("late", value=Json()))


def counted(timestamp: Callable[[Any], int] | None = None) -> Job:
    """Return a job that counts the records of both in windows, and tells what was late."""
    job = Job("counted")
    keyed, plain = streams(job, timestamp)
    count(plain.merge(keyed))
    return job


def counted_by_another_key() -> Job:
    """Return the same behind one more `key_by`."""
    job = Job("counted")
    keyed, plain = streams(job)
    count(plain.merge(keyed).key_by(lambda value: value["key"], name="again", key=String()))
    return job


class Sent(NamedTuple):
    """A record of the input; `late`: it is behind the time of its partition by more than the grace."""

    topic: str
    partition: int
    at: int
    key: str = "a"
    late: bool = False


def send(run: MemoryRun, record: Sent) -> None:
    value = {"key": record.key, "at": record.at}
    key = record.key if record.topic == "plain" else None
    run.send(record.topic, value, key=key, timestamp=record.at, partition=record.partition)


def of_plain(at: int, key: str = "a") -> Sent:
    return Sent("plain", partition_for(key.encode(), PARTITIONS), at, key)


def some_input(random: Random) -> Iterator[Sent]:
    """Yield records as they are produced, of both: each at most the grace behind those before it, or late."""
    clock, newest = 1_000, Counter[tuple[str, int]]()
    for _ in range(200):
        clock += random.randrange(12)
        key, topic = random.choice("abc"), random.choice(("plain", "other"))
        partition = of_plain(0, key).partition if topic == "plain" else random.randrange(PARTITIONS)
        at = clock - random.randrange(GRACE)
        if random.random() < 0.1:
            early = at - random.randrange(2 * SIZE, 4 * SIZE)
            if early // SIZE * SIZE + SIZE + GRACE <= newest[topic, partition]:
                yield Sent(topic, partition, early, key, late=True)
                continue
        newest[topic, partition] = max(newest[topic, partition], at)
        yield Sent(topic, partition, at, key)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("job", [counted, counted_by_another_key])
def test_a_backlog_of_both_makes_what_they_make_as_they_come_with_crashes(job: Callable[[], Job], seed: int) -> None:
    random = Random(seed)
    sent = list(some_input(random))
    expected = Counter((each.key, each.at // SIZE * SIZE) for each in sent if not each.late)
    now = max(each.at for each in sent)
    windows = sorted([key, start, count] for (key, start), count in expected.items() if start + SIZE + GRACE <= now)
    late = sorted(each.at for each in sent if each.late)
    for at_once in (True, False):
        with MemoryRun(job(), partitions=PARTITIONS, parallelism=1 + seed % 3) as run:
            for each in sorted(sent, key=lambda each: each[:2]) if at_once else sent:
                send(run, each)
                if not at_once and random.random() < 0.05:
                    run.crash() if random.random() < 0.5 else run.checkpoint()
            run.checkpoint()
            assert sorted(values(run, "late")) == late
            assert sorted(values(run, "out")) == windows


def test_a_record_is_late_by_the_partition_that_it_comes_from_before_a_mark_says_so() -> None:
    with MemoryRun(counted(), partitions=PARTITIONS) as run:
        for at in (20, 150, 30):
            send(run, of_plain(at))
        run.checkpoint()
        assert values(run, "late") == [30]


def test_a_stream_of_which_nothing_is_left_to_read_holds_nobody_up() -> None:
    with MemoryRun(counted(), partitions=PARTITIONS) as run:
        send(run, of_plain(20))
        for at in (30, 40, 500, 1_000):
            send(run, Sent("other", 0, at))
            run.checkpoint()
        run.checkpoint()
        assert values(run, "out") == [["a", 0, 3], ["a", 500, 1]]


def test_the_time_that_counts_is_the_one_that_the_source_assigns() -> None:
    with MemoryRun(counted(lambda value: int(value["at"])), partitions=PARTITIONS) as run:
        send(run, Sent("other", 0, 500))
        for at in (20, 120, 130):
            run.send("plain", {"key": "a", "at": at}, key="a", timestamp=9_000)
        run.checkpoint()
        assert values(run, "out") == [["a", 0, 1], ["a", 100, 2]]


def test_a_join_lets_nothing_go_alone_that_the_other_stream_may_meet() -> None:
    job = Job("joined")
    keyed, plain = streams(job)
    join = plain.join(
        keyed,
        lambda *both: [both[0] and both[0]["at"], both[1] and both[1]["at"]],
        within="50ms",
        how="outer",
        grace="0ms",
        name="both",
    )
    join.sink(KafkaSink("out", value=Json()))
    with MemoryRun(job, partitions=PARTITIONS) as run:
        for partition, at in ((0, 100), (0, 1_000), (1, 120)):
            send(run, Sent("other", partition, at))
        send(run, of_plain(130))
        run.checkpoint()
        assert sorted(values(run, "out")) == [[130, 100], [130, 120]]


def test_a_table_that_is_looked_into_moves_no_time_behind_the_join_and_holds_none_up() -> None:
    job = Job("looked-up")
    keyed, plain = streams(job)
    count(keyed.join(plain.table(name="rows"), lambda value, row: value, how="left"))
    with MemoryRun(job, partitions=PARTITIONS) as run:
        for at in (5_000, 5_010):
            send(run, of_plain(at))
        for at in (20, 30, 500):
            send(run, Sent("other", 0, at))
        run.checkpoint()
        send(run, of_plain(10))
        run.checkpoint()
        assert (values(run, "out"), values(run, "late")) == ([["a", 0, 2]], [])
