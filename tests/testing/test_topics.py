"""The helpers for topics, on a real broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from twopc.errors import ConfigurationError
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, delete_topic, produce, read_topic

pytestmark = pytest.mark.broker


def test_what_was_produced_is_read_with_all_that_was_said(broker: Broker, topic: Callable[[], str]) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name, 2)
    written = Write(b"v", key=b"k", partition=1, timestamp=1_357_000_000_000, headers=(("h", b"x"), ("empty", None)))
    assert produce(broker.bootstrap_servers, name, [written, b"plain", Write(None, key=b"gone", partition=1)]) == 3
    records = read_topic(broker.bootstrap_servers, name)
    first, second = [record for record in records if record.partition == 1 and record.key]
    assert (first.key, first.value, first.timestamp, first.headers) == (b"k", b"v", written.timestamp, written.headers)
    assert (second.key, second.value) == (b"gone", None)
    assert [record.value for record in records if not record.key] == [b"plain"]


def test_each_partition_is_read_in_the_order_of_its_offsets(broker: Broker, topic: Callable[[], str]) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name, 3)
    produce(broker.bootstrap_servers, name, (Write(b"%d" % n, partition=n % 3) for n in range(3_000)))
    records = read_topic(broker.bootstrap_servers, name)
    for partition in range(3):
        own = [record for record in records if record.partition == partition]
        assert [record.offset for record in own] == list(range(1_000))
        assert [int(record.value or b"") for record in own] == list(range(partition, 3_000, 3))


def test_an_empty_topic_is_read_as_nothing(broker: Broker, topic: Callable[[], str]) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name, 2)
    assert read_topic(broker.bootstrap_servers, name) == []


def test_a_deleted_topic_can_be_created_again_empty(broker: Broker, topic: Callable[[], str]) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name)
    produce(broker.bootstrap_servers, name, [b"old"])
    delete_topic(broker.bootstrap_servers, name)
    create_topic(broker.bootstrap_servers, name)
    assert read_topic(broker.bootstrap_servers, name) == []


def test_a_topic_that_is_not_there_is_not_made_by_reading_it(broker: Broker, topic: Callable[[], str]) -> None:
    with pytest.raises(ConfigurationError, match="there is no topic"):
        read_topic(broker.bootstrap_servers, topic())
