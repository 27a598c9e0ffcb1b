"""Gives each record that a reader saw the transaction that wrote it, by what the partition's log says."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.wire import ControlClient
from twopc.record import Row
from twopc.verify.history import Found, Place
from twopc.verify.replay import plain_headers
from twopc.verify.transactions import Transactions, scan

TransactionLookup = Mapping[TopicPartition, Transactions]


def look_up_transactions(
    client: ControlClient, firsts: Mapping[TopicPartition, Position], log_ends: Mapping[TopicPartition, Position]
) -> TransactionLookup:
    """Read the transactions of each partition from its log.

    The caller asks for `log_ends` after it has read the records: the outcome of a transaction may stand behind the last
    record that a read_committed reader sees.
    """
    return {
        partition: Transactions(
            partition, scan(partial(client.fetch, partition), firsts[partition], end), firsts[partition]
        )
        for partition, end in log_ends.items()
    }


def with_transaction(row: Row, lookup: TransactionLookup) -> Found:
    """Return the record that a reader saw, with its transaction."""
    partition = TopicPartition(row.topic() or "", row.partition() or 0)
    offset = row.offset() or 0
    found = lookup.get(partition)
    transaction = None if found is None else found.at(offset)
    return Found(Place(partition, offset), row.key(), row.value(), plain_headers(row.headers()), transaction)
