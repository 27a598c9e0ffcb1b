"""Settings of a topic that take output away after it was written are told, with topic, setting and value."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from tests.kafka.kit import DrivenSink, FakeRow
from twopc.kafka.topics.topic_lasting import (
    BYTES_KEPT,
    FIRST_RECORDS,
    RETENTION,
    UNCLEAN,
    FirstTimes,
    TopicLasting,
)
from twopc.kafka.topics.topic_limits import CLEANUP, TYPE
from twopc.record import Batch

NOW_MS = 1_750_000_000_000
WEEK_MS = 604_800_000
DEFAULTS: dict[str, str | None] = {
    CLEANUP: "delete",
    TYPE: "CreateTime",
    RETENTION: str(WEEK_MS),
    BYTES_KEPT: "-1",
    UNCLEAN: "false",
}


def lasting(settings: dict[str, str | None]) -> TopicLasting:
    return TopicLasting.of("out", {**DEFAULTS, **settings})


@pytest.mark.parametrize(
    "settings",
    [
        {CLEANUP: "compact"},
        {CLEANUP: "compact,delete"},
        {RETENTION: "3599999"},
        {BYTES_KEPT: "1000000"},
        {UNCLEAN: "true"},
    ],
    ids=str,
)
def test_a_topic_that_will_lose_output_of_any_time_is_told_with_the_setting_and_its_value(
    settings: dict[str, str | None],
) -> None:
    [(name, value)] = settings.items()
    [said] = lasting(settings).warnings()
    assert said.startswith(f"output topic 'out' has {name}={value}: ")


@pytest.mark.parametrize(
    "settings",
    [{}, {RETENTION: "-1"}, {CLEANUP: "", RETENTION: "1"}, dict.fromkeys(DEFAULTS)],
    ids=["as topics are", "no limit", "nothing is deleted", "nobody may see them"],
)
def test_nothing_is_told_of_a_topic_that_keeps_its_records(settings: dict[str, str | None]) -> None:
    kept = lasting(settings)
    assert list(kept.warnings()) == []
    assert kept.of_times([NOW_MS - WEEK_MS, -1], NOW_MS) is None


def test_records_that_are_older_than_the_topic_keeps_them_are_told() -> None:
    said = lasting({}).of_times([NOW_MS, NOW_MS - WEEK_MS - 1], NOW_MS)
    assert said is not None
    assert "have timestamps from 2025-06-08T15:06:39Z on" in said
    assert "retention.ms=604800000 (7 days)" in said
    assert lasting({RETENTION: "-1"}).of_times([1], NOW_MS) is None


def test_times_that_a_broker_s_clock_replaces_are_told_unless_they_are_near_it() -> None:
    stamped = lasting({TYPE: "LogAppendTime"})
    said = stamped.of_times([NOW_MS, NOW_MS - 60_001], NOW_MS)
    assert said is not None
    assert "message.timestamp.type=LogAppendTime" in said
    assert stamped.of_times([NOW_MS - 60_000, -1], NOW_MS) is None


def test_the_first_records_are_looked_at_until_there_is_something_to_tell_and_no_more_than_a_thousand(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    some = FirstTimes(lasting({}))
    assert some.look_at([NOW_MS] * (FIRST_RECORDS - 1), NOW_MS)
    assert not some.look_at([NOW_MS, 1], NOW_MS), "the thousandth is well, the one behind it is not looked at"
    assert not caplog.messages
    assert not FirstTimes(lasting({})).look_at([1], NOW_MS)
    assert len(caplog.messages) == 1


@pytest.mark.broker
def test_a_job_that_replays_what_is_older_than_its_output_topic_keeps_is_told_once(
    servers: str, job: str, new_topic: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic(retention_ms=str(WEEK_MS), cleanup_policy="compact,delete")
    driven = DrivenSink(servers, job, topic, input_topic=topic)
    driven.start_attempt()
    for offset in range(2):
        driven.writer.write(Batch([FakeRow(offset, b"v")], values=[b"v"], keys=[b"k"], timestamps=[1_000_000]))
    driven.die()
    told = [said for said in caplog.messages if repr(topic) in said]
    assert len(told) == 2
    assert f"{CLEANUP}=compact,delete" in told[0]
    assert f"{RETENTION}={WEEK_MS}" in told[1]
