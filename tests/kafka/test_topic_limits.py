"""What a topic would refuse is known before it is sent, and is the error of the one record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.kafka.kit import DrivenSink, FakeRow, values_of
from twopc.kafka.topics.topic_limits import AFTER, BEFORE, CLEANUP, LARGEST, TYPE, TopicLimits
from twopc.record import Batch, RecordsRefused

NOW_MS = 1_750_000_000_000
HOUR_MS = 3_600_000
DEFAULTS = {TYPE: "CreateTime", BEFORE: str(2**63 - 1), AFTER: str(HOUR_MS), CLEANUP: "delete", LARGEST: "1048588"}


def refused(
    settings: Mapping[str, str | None],
    *records: tuple[bytes | str | None, bytes | str | None, int],
    headers: Sequence[tuple[str, bytes]] = (),
    properties: Mapping[str, Any] | None = None,
) -> dict[int, str]:
    limits = TopicLimits.of({**DEFAULTS, **settings}, properties or {})
    keys, values, stamps = (list(column) for column in zip(*records, strict=True))
    found = limits.refusals(keys, values, [tuple(headers)] * len(records), stamps, NOW_MS)
    return {index: str(error) for index, error in found.items()}


def test_a_time_that_is_further_ahead_or_behind_than_the_topic_takes() -> None:
    stamps = [NOW_MS - 2 * HOUR_MS, NOW_MS, NOW_MS + HOUR_MS, NOW_MS + HOUR_MS + 1, -1]
    found = refused({BEFORE: str(HOUR_MS)}, *((b"k", b"v", stamp) for stamp in stamps))
    assert found.keys() == {0, 3}
    assert "7,200 s behind the clock, and the topic has message.timestamp.before.max.ms=3600000" in found[0]
    assert "3,600 s ahead of the clock, and the topic has message.timestamp.after.max.ms=3600000" in found[3]


def test_a_topic_that_stamps_records_itself_takes_every_time() -> None:
    assert refused({TYPE: "LogAppendTime"}, (b"k", b"v", NOW_MS + 100 * HOUR_MS)) == {}


def test_a_record_without_a_key_where_the_topic_is_compacted() -> None:
    found = refused({CLEANUP: "compact,delete"}, (None, b"v", NOW_MS), (b"", b"v", NOW_MS))
    assert found.keys() == {0}


def test_a_record_that_is_too_large_with_its_key_and_headers() -> None:
    records = [(b"k" * 20, b"v" * size, NOW_MS) for size in (100, 400)]
    assert refused({LARGEST: "500"}, *records).keys() == set()
    assert refused({LARGEST: "500"}, *records, headers=[("h" * 10, b"1" * 20)]).keys() == {1}


def test_text_has_the_bytes_that_it_is_written_as() -> None:
    assert refused({LARGEST: "500"}, ("ü" * 100, "ü" * 100, NOW_MS)).keys() == set()
    assert refused({LARGEST: "500"}, ("ü" * 100, "ü" * 120, NOW_MS)).keys() == {0}


@pytest.mark.parametrize("headers", [5, "h", [("h",)], ["h"], [(1, 2)], {"h": b"1"}])
def test_what_the_client_refuses_is_left_to_it(headers: Any) -> None:
    limits = TopicLimits.of({**DEFAULTS, LARGEST: "500"}, {})
    assert limits.refusals([1], [2.0], [headers], [NOW_MS], NOW_MS) == {}


def test_what_a_producer_compresses_or_refuses_itself_is_left_to_it() -> None:
    large = (b"k", b"v" * 10_000, NOW_MS)
    assert refused({LARGEST: "500"}, large, properties={"compression.type": "zstd"}) == {}
    assert refused({LARGEST: "9000"}, large, properties={"message.max.bytes": 5_000}) == {}


def test_settings_that_nobody_may_see_refuse_nothing() -> None:
    assert refused(dict.fromkeys(DEFAULTS), (None, b"v" * 2_000_000, 1)) == {}


@pytest.mark.broker
@pytest.mark.parametrize(
    ("settings", "odd"),
    [
        pytest.param({"cleanup_policy": "compact"}, FakeRow(1, b"odd"), id="no key"),
        pytest.param({"max_message_bytes": "500"}, FakeRow(1, b"x" * 600, b"k"), id="size"),
        pytest.param({}, FakeRow(1, b"odd", b"k", (1, 4_000_000_000_000)), id="time"),
    ],
)
def test_a_broker_refuses_none_of_what_is_left(
    servers: str, job: str, new_topic: Callable[..., str], settings: dict[str, str], odd: FakeRow
) -> None:
    topic = new_topic(**settings)
    driven = DrivenSink(servers, job, topic, input_topic=topic)
    driven.start_attempt()
    rows = [FakeRow(0, b"a", b"k"), odd, FakeRow(2, b"b", b"k")]
    with pytest.raises(RecordsRefused, match=rf"input\[0\]@1: writing to topic {topic} failed"):
        driven.writer.write(Batch(rows, [row.payload for row in rows]))
    driven.commit(driven.pre_commit(1))
    driven.die()
    assert values_of(servers, topic) == [b"a", b"b"]
