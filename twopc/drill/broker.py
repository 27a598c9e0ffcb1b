"""What a drill asks of the brokers, all of it reading, and the few scratch things that it creates and deletes there.

Invariant: only names that begin with `scratch.PREFIX` are created or deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from twopc.drill.judging import Ranges
from twopc.drill.scratch import PREFIX
from twopc.kafka import cluster as brokers
from twopc.kafka.access import access_of
from twopc.kafka.group import delete_group
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topic_reader import high_watermarks, read
from twopc.kafka.topics import TopicClient
from twopc.kafka.wire import EARLIEST, LATEST, TopicInfo
from twopc.record import Row
from twopc.verify.history import Found
from twopc.verify.transaction_lookup import TransactionLookup, look_up_transactions, with_transaction

_STALL_SECONDS = 30.0


class Cluster:
    """One Kafka cluster, as the job's source or sink reaches it, by the `properties` of either."""

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, Any]) -> None:
        self.access = access_of(properties)
        self._brokers = brokers.Cluster(bootstrap_servers, self.access)
        self.control = TopicClient(bootstrap_servers, self.access)

    def close(self) -> None:
        self.control.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ranges(self, topics: Mapping[str, TopicInfo]) -> dict[TopicPartition, tuple[Position, Position]]:
        """The first offset of each partition, and the end that a read_committed reader sees."""
        partitions = [
            TopicPartition(name, number) for name, topic in topics.items() for number in range(topic.partitions)
        ]
        firsts = self.control.offsets(dict.fromkeys(partitions, EARLIEST))
        ends = self.control.offsets(dict.fromkeys(partitions, LATEST))
        return {partition: (firsts[partition], ends[partition]) for partition in partitions}

    def log_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Position]:
        """Where the log of each partition ends, with what an open transaction hides."""
        return high_watermarks(self._brokers, partitions)

    def create_topic(self, topic: str, partitions: int) -> None:
        """Create a scratch topic, and return when every partition has a leader."""
        assert topic.startswith(PREFIX), "a drill creates scratch topics only"
        self.control.create_topic(topic, partitions)

    def delete_topic(self, topic: str) -> None:
        """Delete a scratch topic; one that is not there is fine."""
        assert topic.startswith(PREFIX), "a drill deletes scratch topics only"
        if self.control.topics([topic]):
            self.control.delete_topic(topic)

    def delete_group(self, group: str) -> None:
        """Delete a scratch consumer group; one that is not there is fine."""
        assert group.startswith(PREFIX), "a drill deletes scratch groups only"
        delete_group(self._brokers, group)

    def read(self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> Iterator[Row]:
        """Yield the committed records from each start up to each end; raise Unavailable if none come for long."""
        ranges = {each: (Position(starts[each]), Position(end)) for each, end in sorted(ends.items())}
        for batch in read(self._brokers, ranges, stall_seconds=_STALL_SECONDS):
            yield from batch.rows

    def whose(self, ranges: Ranges) -> TransactionLookup:
        """Return whose the records of these ranges are; their ends were asked for before."""
        return look_up_transactions(
            self.control, {each: first for each, (first, _) in ranges.items()}, self.log_ends(ranges)
        )

    def see(self, ranges: Ranges, whose: TransactionLookup) -> list[Found]:
        """Return what a read_committed reader sees of these ranges, each record with its transaction."""
        starts = {each: first for each, (first, _) in ranges.items()}
        return [
            with_transaction(row, whose) for row in self.read(starts, {each: end for each, (_, end) in ranges.items()})
        ]
