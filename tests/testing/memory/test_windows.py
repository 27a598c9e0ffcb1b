"""A windowed count through crashes, checkpoints and other numbers of subtasks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.testing.memory.test_crashes import AFTER
from twopc import ConfigurationError, Job, Json, KafkaSink, KafkaSource, Sliding, String, Tumbling, Window
from twopc.testing import MemoryRun
from twopc.testing.memory.run import Moment


def per_minute() -> Job:
    job = Job("per-minute")
    clicks = job.source(
        KafkaSource("clicks", key=String(), value=Json()), timestamp=lambda click: click["at_ms"], name="clicks"
    )
    counted = clicks.window(Tumbling("1m"), grace="10s").count(name="clicks-per-minute")
    counted.final().sink(KafkaSink("clicks-per-minute", key=String(), value=Json()))
    counted.current().map(lambda window: window.value).sink(KafkaSink("so-far", key=String(), value=Json()))
    counted.late().sink(KafkaSink("late-clicks", key=String(), value=Json()))
    return job


def click(run: MemoryRun, *times: int, page: str = "/", partition: int | None = None) -> None:
    for at_ms in times:
        run.send("clicks", {"at_ms": at_ms}, page, partition=partition)


def read(run: MemoryRun, topic: str) -> list[Any]:
    return [record.value for record in run.read(topic)]


def test_a_window_is_told_once_when_event_time_passes_it() -> None:
    with MemoryRun(per_minute()) as run:
        click(run, 1_000, 59_000, 61_000)
        run.checkpoint()
        assert read(run, "clicks-per-minute") == []
        click(run, 200_000, 2_000)
        run.checkpoint()
        assert read(run, "clicks-per-minute") == [
            {"start": 0, "end": 60_000, "value": 2},
            {"start": 60_000, "end": 120_000, "value": 1},
        ]
        assert read(run, "so-far") == [1, 2, 1, 1]
        assert read(run, "late-clicks") == [{"at_ms": 2_000}]


@pytest.mark.parametrize("after", AFTER)
def test_windows_that_were_open_at_a_crash_close_once(after: Moment) -> None:
    with MemoryRun(per_minute(), partitions=2, parallelism=2) as run:
        for partition in (0, 1):
            click(run, 1_000, 2_000, page=f"/{partition}", partition=partition)
        run.checkpoint()
        for partition in (0, 1):
            click(run, 3_000, 100_000, page=f"/{partition}", partition=partition)
        run.crash(after)
        run.checkpoint()
        final = run.read("clicks-per-minute")
        assert sorted((record.key, record.value["value"]) for record in final) == [("/0", 3), ("/1", 3)]
        assert sorted(read(run, "so-far")) == [1, 1, 1, 1, 2, 2, 3, 3]


def attempts() -> Job:
    job = Job("attempts")
    logins = job.source(KafkaSource("logins", key=String(), value=Json()), timestamp=lambda login: login["at_ms"])
    joined = logins.map(lambda login: [login["at_ms"]]).window(Sliding("1m")).reduce(list.__add__, name="per-user")
    joined.final().map(lambda window: window.value).sink(KafkaSink("attempts", key=String(), value=Json()))
    return job


@pytest.mark.parametrize("after", AFTER)
def test_sliding_windows_go_on_behind_a_crash_with_what_is_over(after: Moment) -> None:
    with MemoryRun(attempts(), partitions=2, parallelism=2) as run:
        run.send("logins", {"at_ms": 10_000}, "ann", partition=0)
        run.send("logins", {"at_ms": 20_000}, "bob", partition=0)
        run.checkpoint()
        for at_ms in (50_000, 75_000):
            run.send("logins", {"at_ms": at_ms}, "ann", partition=0)
        run.crash(after)
        run.advance("5m")
        run.checkpoint()
        assert [record.value for record in run.read("attempts") if record.key == "ann"] == [
            [10_000],
            [10_000, 50_000],
            [50_000],
            [50_000, 75_000],
            [75_000],
        ]


def test_the_open_windows_of_a_key_can_be_looked_at_and_closed_ones_are_gone() -> None:
    with MemoryRun(per_minute()) as run:
        click(run, 1_000, 65_000, 66_000)
        run.checkpoint()
        assert run.state("clicks-per-minute", "/") == [Window(0, 60_000, 1), Window(60_000, 120_000, 2)]
        click(run, 300_000, page="/other")
        run.checkpoint()
        assert run.state("clicks-per-minute", "/") is None


@pytest.mark.parametrize("after", AFTER)
def test_sums_and_lists_of_local_days_go_on_behind_a_crash(after: Moment) -> None:
    job = Job("takings")
    paid = job.source(KafkaSource("paid", key=String(), value=Json()), timestamp=lambda paid: paid["at_ms"])
    days = paid.map(lambda paid: paid["cents"]).window(Tumbling("1d", timezone="Europe/Berlin"))
    days.sum(name="by-day").final().sink(KafkaSink("takings", key=String(), value=Json()))
    days.collect(name="slips").final().map(lambda window: window.value).sink(
        KafkaSink("slips", key=String(), value=Json())
    )
    with MemoryRun(job) as run:
        # 2026-10-25 has 25 hours there, from 22:00 UTC on.
        midnight = 1_792_879_200_000
        for hours, cents in ((-1, 1), (0, 250), (24, 499)):
            run.send("paid", {"at_ms": midnight + hours * 3_600_000, "cents": cents}, "till")
        run.checkpoint()
        assert run.state("slips", "till") == [Window(midnight, midnight + 25 * 3_600_000, [250, 499])]
        run.send("paid", {"at_ms": midnight + 25 * 3_600_000 - 1, "cents": 1_000}, "till")
        run.crash(after)
        run.advance("1s")
        run.checkpoint()
        assert [each["value"] for each in read(run, "takings")] == [1, 1_749]
        assert read(run, "slips") == [[1], [250, 499, 1_000]]


def test_time_passes_without_a_record_to_a_time_or_by_a_duration() -> None:
    with MemoryRun(per_minute(), partitions=3, parallelism=2) as run:
        for partition in range(3):
            click(run, 5_000, page=f"/{partition}", partition=partition)
        run.advance("1m")
        run.checkpoint()
        assert read(run, "clicks-per-minute") == []
        run.advance(70_000)
        run.checkpoint()
        final = sorted(run.read("clicks-per-minute"), key=lambda record: record.key)
        assert [(record.key, record.value["value"], record.timestamp) for record in final] == [
            ("/0", 1, 59_999),
            ("/1", 1, 59_999),
            ("/2", 1, 59_999),
        ]
        click(run, 6_000, page="/0", partition=0)
        run.checkpoint()
        assert read(run, "late-clicks") == [{"at_ms": 6_000}]


def test_a_crash_takes_back_the_time_that_no_checkpoint_holds() -> None:
    with MemoryRun(per_minute()) as run:
        click(run, 5_000)
        run.checkpoint()
        run.advance("1h")
        run.crash()
        click(run, 6_000)
        run.advance("1h")
        run.checkpoint()
        assert [each["value"] for each in read(run, "clicks-per-minute")] == [2]


def test_time_passes_in_front_of_key_by_before_it_does_behind() -> None:
    job = Job("twice")
    clicks = job.source(KafkaSource("clicks", key=String(), value=Json()), timestamp=lambda click: click["at_ms"])
    pages = clicks.window(Tumbling("1m")).count(name="by-page").final().map(lambda window: window.value)
    counts = pages.key_by(lambda clicks: "all", name="all", value=Json()).window(Tumbling("1h")).reduce(max, name="top")
    counts.final().sink(KafkaSink("top", key=Json(), value=Json()))
    with MemoryRun(job, partitions=2) as run:
        click(run, 1_000, 2_000, 61_000, page="/a")
        click(run, 3_000, page="/b")
        run.advance("1h")
        run.advance("1h")
        run.checkpoint()
        assert read(run, "top") == [{"start": 0, "end": 3_600_000, "value": 2}]


def test_to_advance_from_nowhere_by_a_duration_is_refused() -> None:
    with MemoryRun(per_minute()) as run:
        with pytest.raises(ConfigurationError, match="has no stream time yet"):
            run.advance("1m")
        with pytest.raises(ConfigurationError, match="or Unix milliseconds"):
            run.advance("soon")
