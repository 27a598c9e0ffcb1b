"""A record moves stream time no further ahead of the clock than it may, and goes wrong by name where it would."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from twopc import (
    ConfigurationError,
    Context,
    DeadLetter,
    Fail,
    Job,
    Json,
    KafkaSink,
    KafkaSource,
    Processor,
    Record,
    String,
    Tumbling,
    UserCodeError,
    ValueState,
)
from twopc.config import RunSettings
from twopc.error_policy import ErrorPolicy
from twopc.testing import MemoryRun

NOW_MS = time.time_ns() // 1_000_000
HOUR_MS = 3_600_000


class FirstOfId(Processor):
    """The first of each key of a day, and when its timer fires."""

    seen = ValueState(Json(), ttl="24h")

    def process(self, record: Record, context: Context) -> Iterator[Record]:
        if self.seen.get() is None:
            self.seen.set(True)
            context.set_timer(NOW_MS + 2 * HOUR_MS)
            yield record.replace(value="first")

    def on_timer(self, at: int, context: Context) -> Record:
        return Record(context.key, "timer")


def built(on_error: ErrorPolicy) -> Job:
    job = Job("ahead", on_error=on_error)
    read = job.source(KafkaSource("in", key=String(), value=Json()))
    read.process(FirstOfId(), name="first").sink(KafkaSink("firsts", key=String(), value=Json()))
    counted = read.window(Tumbling("1h")).count(name="hours").final().map(lambda window: window.value)
    counted.sink(KafkaSink("hours", key=String(), value=Json()))
    return job


def send(run: MemoryRun, *records: tuple[str, int]) -> None:
    for key, at in records:
        run.send("in", 1, key, timestamp=at)


def values(run: MemoryRun, topic: str) -> list[Any]:
    return [record.value for record in run.read(topic)]


MICROSECONDS = ("odd", NOW_MS * 1_000)


def test_a_record_in_microseconds_expires_nothing_fires_nothing_and_closes_nothing() -> None:
    with MemoryRun(built(DeadLetter("dead"))) as run:
        send(run, ("a", NOW_MS), MICROSECONDS, ("a", NOW_MS + 1), ("b", NOW_MS + 2))
        run.checkpoint()
        assert (values(run, "firsts"), values(run, "hours")) == (["first", "first"], [])
        dead = run.read("dead")
        assert [record.key for record in dead] == [b"odd", b"odd"], "one for each direction"
        send(run, ("b", NOW_MS + 3 * HOUR_MS))
        run.checkpoint()
        assert (values(run, "firsts"), sorted(values(run, "hours"))) == (["timer", "timer"], [1, 2])


def test_a_record_too_far_ahead_is_named_with_its_time_and_the_setting() -> None:
    said = rf"record in\[0\]@1 has the timestamp {NOW_MS}000, and .* takes none later than \d+ \(2.*--max-time-ahead"
    with MemoryRun(built(Fail())) as run:
        send(run, ("a", NOW_MS), MICROSECONDS)
        with pytest.raises(UserCodeError, match=said):
            run.checkpoint()


@pytest.mark.parametrize(("ahead", "is_taken"), [("1h", False), ("3h", True), (None, True)])
def test_how_far_ahead_a_record_may_be_is_a_setting_of_a_day(ahead: str | None, is_taken: bool) -> None:
    with MemoryRun(built(DeadLetter("dead")), max_time_ahead=ahead) as run:
        send(run, ("a", NOW_MS + 2 * HOUR_MS - 1), ("b", NOW_MS + 25 * HOUR_MS))
        run.checkpoint()
        assert values(run, "firsts") == ["first"] * is_taken
        assert [record.key for record in run.read("dead")] == ([b"b"] * 2 if is_taken else [b"a", b"a", b"b", b"b"])


def test_a_bound_is_no_negative_time() -> None:
    with pytest.raises(ConfigurationError, match="max_time_ahead_ms can't be negative"):
        RunSettings(max_time_ahead_ms=-1)
