"""Whose the records of a partition are, told by its log."""

from __future__ import annotations

import pytest

from tests.kafka.test_batches import marker, written
from twopc.errors import Unavailable
from twopc.kafka.input.batches import log_batches, scan
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.verify.history import Outcome
from twopc.verify.transactions import Transactions

PARTITION = TopicPartition("out", 0)

#: Two producers that take turns, one record outside of any transaction, and one transaction that never ends.
LOG = [
    written(0, 2, producer=1),
    written(2, 3, producer=2),
    written(5, 1, producer=1),
    marker(6, 1, producer=1),
    marker(7, 0, producer=2, epoch=4),
    written(8, 1, producer=-1, transactional=False),
    written(9, 2, producer=1),
]


def transactions() -> Transactions:
    return Transactions(PARTITION, log_batches(b"".join(LOG)))


def test_what_a_producer_wrote_since_its_last_marker_is_one_transaction() -> None:
    found = [transactions().at(offset) for offset in range(11)]
    numbers = [None if each is None else each.number for each in found]
    assert [numbers[offset] for offset in (0, 1, 5)] == [0, 0, 0]
    assert [numbers[offset] for offset in (2, 3, 4)] == [1, 1, 1]
    assert [numbers[offset] for offset in (8, 9, 10)] == [None, 2, 2]


def test_the_marker_says_what_became_of_it_also_when_the_producer_was_fenced() -> None:
    outcomes = [each.outcome for offset in (0, 2, 9) if (each := transactions().at(offset))]
    assert outcomes == [Outcome.COMMITTED, Outcome.ABORTED, Outcome.OPEN]
    assert transactions().outcomes() == dict.fromkeys(Outcome, 1)


def test_before_the_first_record_there_is_no_transaction() -> None:
    assert Transactions(PARTITION, ()).at(0) is None


def timed(first: int = 0) -> Transactions:
    """One producer, two transactions that a reader sees and one that was aborted; then another producer's."""
    log = [
        written(first, 3, producer=1),
        marker(first + 3, 1, producer=1, time_ms=100),
        written(first + 4, 2, producer=1),
        marker(first + 6, 1, producer=1, time_ms=200),
        written(first + 7, 2, producer=1),
        marker(first + 9, 0, producer=1, time_ms=300),
        written(first + 10, 1, producer=2),
        marker(first + 11, 1, producer=2, time_ms=400),
    ]
    return Transactions(PARTITION, log_batches(b"".join(log)))


@pytest.mark.parametrize(
    ("producer", "start_ms", "last"),
    [
        pytest.param(1, 50, 2, id="its first"),
        pytest.param(1, 150, 5, id="its second"),
        pytest.param(1, 250, None, id="an aborted one"),
        pytest.param(1, 350, None, id="one that is not there yet"),
        pytest.param(2, 250, 10, id="another producer's"),
    ],
)
def test_a_transaction_is_found_by_its_producer_and_its_beginning(
    producer: int, start_ms: int, last: int | None
) -> None:
    assert timed().end_of(producer, 3, start_ms) == last


def test_what_began_before_the_log_that_was_read_is_not_taken_for_a_later_one() -> None:
    assert timed(first=7).end_of(1, 3, 50) is None
    assert timed(first=7).end_of(1, 3, 150) == 12


def test_another_epoch_is_another_producer() -> None:
    assert timed().end_of(1, 4, 50) is None


def test_a_log_is_read_on_from_where_a_fetch_ended_and_not_beyond_its_end() -> None:
    asked = []

    def fetch(at: Position) -> bytes:
        """One batch, from the one that holds the offset on."""
        asked.append(at)
        batches = [next(iter(log_batches(data))) for data in LOG]
        return next(data for data, batch in zip(LOG, batches, strict=True) if batch.last >= at)

    assert [batch.first for batch in scan(fetch, Position(0), Position(8))] == [0, 2, 5, 6, 7]
    assert asked == [0, 2, 5, 6, 7]


def test_a_log_that_ends_too_early_is_an_error() -> None:
    with pytest.raises(Unavailable, match="from offset 0"):
        list(scan(lambda at: b"", Position(0), Position(1)))
