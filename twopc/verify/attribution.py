"""What a reader saw, each record with the transaction that the log says it is of."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from twopc.kafka.wire import ControlClient
from twopc.protocol.ids import Position, TopicPartition
from twopc.record import Row
from twopc.verify.history import Found, Place
from twopc.verify.replay import plain_headers
from twopc.verify.transactions import Transactions, scan

Owners = Mapping[TopicPartition, Transactions]


def owners(
    client: ControlClient, firsts: Mapping[TopicPartition, Position], log_ends: Mapping[TopicPartition, Position]
) -> Owners:
    """Read whose the records of each partition are.

    `log_ends` must have been asked for after the records were: what became of a transaction may stand beyond the last
    record that a read_committed reader sees.
    """
    return {
        partition: Transactions(
            partition, scan(partial(client.fetch, partition), firsts[partition], end), firsts[partition]
        )
        for partition, end in log_ends.items()
    }


def attributed(row: Row, whose: Owners) -> Found:
    """Return the record that a reader saw, with its transaction."""
    partition = TopicPartition(row.topic() or "", row.partition() or 0)
    offset = row.offset() or 0
    found = whose.get(partition)
    transaction = None if found is None else found.at(offset)
    return Found(Place(partition, offset), row.key(), row.value(), plain_headers(row.headers()), transaction)
