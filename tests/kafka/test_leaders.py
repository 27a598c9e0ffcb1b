"""What a real broker's partitions say of an open transaction, and a marker that closes it there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka.kit import DrivenSink, eventually, values_of
from twopc.kafka.clients.leaders import LeaderClient
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.kafka.transactions.missing_markers import OFFSETS_TOPIC

pytestmark = pytest.mark.broker


@pytest.fixture
def leaders(servers: str) -> Iterator[LeaderClient]:
    """Return a client of the broker under test."""
    with LeaderClient(servers, {}) as client:
        yield client


@pytest.fixture
def prepared(driven: DrivenSink) -> PreparedTransaction:
    """Return a transaction with one record that was pre-committed, with the group's positions, and not committed."""
    driven.write(b"pre-committed")
    return PreparedTransaction.from_committable(driven.pre_commit(1, position=1))


def test_a_transaction_is_open_where_it_wrote_and_where_its_group_keeps_its_offsets(
    leaders: LeaderClient, prepared: PreparedTransaction
) -> None:
    producer = (prepared.producer_id, prepared.producer_epoch)
    assert OFFSETS_TOPIC in {each.topic for each in prepared.partitions}
    assert set(leaders.open_in(prepared.partitions, producer)) == set(prepared.partitions)


def test_an_open_transaction_is_nobody_elses(leaders: LeaderClient, prepared: PreparedTransaction) -> None:
    another = (prepared.producer_id, prepared.producer_epoch + 1)
    assert leaders.open_in(prepared.partitions, another) == {}


def test_a_commit_marker_shows_readers_what_the_transaction_wrote(
    leaders: LeaderClient, prepared: PreparedTransaction, servers: str
) -> None:
    [topic] = prepared.topic_ids
    producer = (prepared.producer_id, prepared.producer_epoch)
    assert values_of(servers, topic) == []
    leaders.write_commit_markers(leaders.open_in([TopicPartition(topic, 0)], producer), producer)
    eventually(lambda: values_of(servers, topic) == [b"pre-committed"])
    assert leaders.open_in([TopicPartition(topic, 0)], producer) == {}
