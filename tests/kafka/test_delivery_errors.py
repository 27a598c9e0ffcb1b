"""Which record is named when a whole request of them was refused."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaError

from twopc.errors import Unavailable, UserCodeError
from twopc.kafka.clients.delivery_errors import RECENT_RECORDS, Deliveries, UndeliveredRecord, WrittenBatch
from twopc.testing.rows import InputRow

Pair = tuple[bytes | None, bytes]


def written(pairs: Sequence[Pair], first: int = 0, topic: str = "out", timestamp: int = 0) -> WrittenBatch:
    rows = [InputRow(value, offset_=first + index) for index, (_, value) in enumerate(pairs)]
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    return WrittenBatch(topic, rows, keys, values, [timestamp] * len(pairs))


def failing(code: int, pairs: Sequence[Pair]) -> list[UndeliveredRecord]:
    return [UndeliveredRecord(KafkaError(code), "out", 0, key, value) for key, value in pairs]


def error_of(batches: Sequence[WrittenBatch], reports: Sequence[UndeliveredRecord]) -> Exception | None:
    deliveries = Deliveries()
    for batch in batches:
        deliveries.written(batch)
    for report in reports:
        deliveries.failed(report)
    return deliveries.failure()


GOOD: list[Pair] = [(b"k", b"1"), (b"k", b"22")]


def test_where_all_was_delivered_there_is_no_error() -> None:
    assert error_of([written(GOOD)], []) is None


def test_of_a_request_that_is_too_large_the_largest_record_is_named() -> None:
    error = error_of([written(GOOD), written([(b"k", b"333")], first=7)], failing(KafkaError.MSG_SIZE_TOO_LARGE, GOOD))
    assert isinstance(error, UserCodeError)
    assert "in[0]@1 (3 bytes" in str(error), "333 was not refused"


def test_the_same_record_in_another_topic_is_not_named() -> None:
    error = error_of([written(GOOD, topic="other"), written(GOOD, first=5)], failing(KafkaError.INVALID_RECORD, GOOD))
    assert "in[0]@5" in str(error)


def test_a_record_that_was_written_too_long_ago_is_told_by_its_size() -> None:
    batches = [written([(b"later", b"%d" % index)], first=index) for index in range(RECENT_RECORDS)]
    error = error_of([written(GOOD), *batches], failing(KafkaError.MSG_SIZE_TOO_LARGE, [(b"k", b"22")]))
    assert isinstance(error, UserCodeError)
    assert "(3 bytes" in str(error)
    assert "in[0]" not in str(error)


def test_what_was_purged_with_a_record_does_not_hide_it() -> None:
    purged = failing(KafkaError._PURGE_QUEUE, GOOD[:1])
    error = error_of([written(GOOD)], [*purged, *failing(KafkaError.INVALID_RECORD, GOOD[1:])])
    assert isinstance(error, UserCodeError)
    assert "in[0]@1" in str(error)


def test_an_error_of_the_brokers_is_blamed_on_no_record() -> None:
    error = error_of([written(GOOD)], failing(KafkaError.NOT_ENOUGH_REPLICAS, GOOD))
    assert isinstance(error, Unavailable)
    assert "in[0]" not in str(error)
