"""Brings a new broker to the speed of one that has served for a while: HotSpot compiles what was called often.

A checkpoint every 100 ms is ten transactions a second, so a run of a minute alone would be measured with a broker that
still interprets, and compiles beside it, what ends a transaction.
"""

from __future__ import annotations

from itertools import cycle, islice

from bare_loop import producers
from confluent_kafka import Consumer, TopicPartition

from twopc.kafka.clients.control_client import ControlClient
from twopc.testing.topics import create_topic

TOPIC, GROUP = "warm-up", "warm-up"
PARTITIONS = 4
RECORDS = 20
SECONDS = 30


def warm_up(servers: str, transactions: int) -> None:
    """Write, describe and commit so many small transactions: some 150 a second."""
    create_topic(servers, TOPIC, PARTITIONS)
    slots = cycle(enumerate(producers(servers, TOPIC)))
    consumer = Consumer({"bootstrap.servers": servers, "group.id": GROUP})
    group = consumer.consumer_group_metadata()
    with ControlClient(servers, {}) as control:
        for number, (slot, producer) in enumerate(islice(slots, transactions)):
            producer.begin_transaction()
            for record in range(RECORDS):
                producer.produce(TOPIC, b"x" * 100, partition=record % PARTITIONS)
            producer.flush(SECONDS)
            producer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, number)], group)
            control.describe_transaction(f"{TOPIC}-{slot}")
            producer.commit_transaction(SECONDS)
    consumer.close()
