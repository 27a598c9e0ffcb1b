"""Reads topics to judge them: each record with the transaction that wrote it, by what the partition's log says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.input.batches import scan
from twopc.kafka.input.topic_reader import Ranges, high_watermarks, read
from twopc.kafka.place import Place
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.record import Row
from twopc.time_marks import HEADER, is_mark
from twopc.verify.compaction_gaps import count_gaps
from twopc.verify.history import Found
from twopc.verify.replay import plain_headers
from twopc.verify.transactions import Transactions

TransactionLookup = Mapping[TopicPartition, Transactions]


@dataclass(frozen=True, slots=True)
class TopicLog:
    """The topics of one cluster, as they are read to be judged."""

    cluster: Cluster

    def lookup(self, ranges: Ranges, log_ends: Mapping[TopicPartition, Position] | None = None) -> TransactionLookup:
        """Return whose the records of these ranges are, whose ends were asked for before.

        The logs are read up to `log_ends`, where they end now unless given: the outcome of a transaction may stand
        behind the last record that a read_committed reader sees.
        """
        ends = high_watermarks(self.cluster, ranges) if log_ends is None else log_ends
        with self.cluster.client() as client:
            return {
                partition: Transactions(
                    partition, scan(partial(client.fetch, partition), first, ends[partition]), first
                )
                for partition, (first, _) in ranges.items()
            }

    def see(self, ranges: Ranges, lookup: TransactionLookup, *, committed: bool = True) -> Iterator[Found]:
        """Yield what a reader sees of these ranges, each record with its transaction; no marks of time."""
        for batch in read(self.cluster, ranges, committed=committed):
            for row in batch.rows:
                if not is_mark(row):
                    yield with_transaction(row, lookup)

    def empty(self, ranges: Ranges) -> dict[TopicPartition, int]:
        """Return at how many offsets of each range nothing stands, neither record nor marker."""
        with self.cluster.client() as client:
            return {
                partition: count_gaps(first, scan(partial(client.fetch, partition), first, end))
                for partition, (first, end) in ranges.items()
            }


def with_transaction(row: Row, lookup: TransactionLookup) -> Found:
    """Return the record that a reader saw, with its transaction."""
    partition = TopicPartition(row.topic() or "", row.partition() or 0)
    offset = row.offset() or 0
    found = lookup.get(partition)
    transaction = None if found is None else found.at(offset)
    # When a record came is no part of what a job makes of it.
    headers = tuple(each for each in plain_headers(row.headers()) if each[0] != HEADER)
    return Found(Place(partition, offset), row.key(), row.value(), headers, transaction)
