"""Reads one subtask's partitions with one consumer: assigned, read_committed, from numbers.

Invariants:

- The position moves over what is no record too (markers of transactions, aborted and compacted records), so a bounded
  read ends by position, never by the offset of a last record. Where such things are all that is left, librdkafka's own
  position stays before them; its report of the partition's end says where they end.
- Nothing at or beyond a split's stop is handed over, and a split that reached it reports the stop as its position.
- Nothing that is passed over is handed over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from twopc.column_rows import places_of, take
from twopc.errors import ConfigurationError
from twopc.kafka.clients.client_health import BrokerHealthCheck
from twopc.kafka.clients.failures import error_of, failure
from twopc.kafka.input.fetching import ReadError, fetching
from twopc.kafka.positions.group_offset import group_offset
from twopc.kafka.positions.partition_position import LastRead, PartitionSplit, is_in, partition_positions
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topic_serdes import TopicSerdes
from twopc.kafka.topics.subtask_client import SubtaskClient
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import NO_ATTEMPT, AttemptId, CheckpointId
from twopc.record import Batch, Row
from twopc.serde import Serde
from twopc.source import SourceReader

log = logging.getLogger(__name__)

END_SECONDS = 10.0
"""How long a broker may take to say where a partition ends."""

QUIET_SECONDS = 3.0
"""After so long without a record it is asked whether the topics are still there."""

_UNKNOWN = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION}
_GONE = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._LOG_TRUNCATION}


def check_config(config: dict[str, Any]) -> None:
    """Raise ConfigurationError if librdkafka doesn't take these settings; connects to nothing that matters."""
    _consumer(config).close()


class KafkaReader(SourceReader):
    """One consumer for all splits of a subtask; none for no splits.

    Through the client it makes sure that the topics stay the same. A reader without one is no job's: it says nothing of
    that, and needs no right to a consumer group.
    """

    def __init__(
        self,
        config: dict[str, Any],
        key: Serde,
        value: Serde,
        splits: Sequence[PartitionSplit],
        client: SubtaskClient | None = None,
        attempt: AttemptId = NO_ATTEMPT,
    ) -> None:
        self._attempt = attempt
        self._client = client
        self._read_at = time.monotonic()
        there = [split for split in splits if not split.gone]
        self._note_topics(there)
        self._serdes = TopicSerdes(key, value, dict.fromkeys(split.partition.topic for split in there))
        self._splits = {split.partition: split for split in splits}
        self._partitions = [ClientPartition(split.partition.topic, split.partition.partition) for split in there]
        self._ended = {split.partition for split in splits if split.stop is not None and split.start >= split.stop}
        self._passed = {split.partition: split.passed for split in there if split.passed}
        self._paused: set[TopicPartition] = set()
        self._bounded = any(split.stop is not None for split in there)
        self._seen_beyond: dict[TopicPartition, int] = {}
        self._reported_ends: dict[TopicPartition, int] = {}
        self._last_read: dict[TopicPartition, LastRead] = {}
        self._bytes_read = 0
        self._health = BrokerHealthCheck(config)
        self._consumer: Consumer | None = None
        self._fetching = fetching()
        if there:
            calls = {"on_commit": _log_commit, "error_cb": self._health.on_error}
            self._consumer = _consumer({**config, **calls, **self._fetching.settings})
            self._fetching.start(self._consumer, [split.partition for split in there])
            self._consumer.assign(
                [ClientPartition(split.partition.topic, split.partition.partition, split.start) for split in there]
            )
            self._pause({split.partition for split in there} & self._ended)

    def poll(self, timeout: float, most: int) -> Batch | None:
        if self._consumer is None or self.finished():
            return None
        try:
            rows, errors = self._fetching.take(most, timeout)
            if rows or errors:
                self._read_at = time.monotonic()
            else:
                self._wait(self._consumer)
        except KafkaException as error:
            raise failure("reading", error_of(error)) from error
        for report in errors:
            self._take_error(report)
        if self._bounded:
            rows = self._cut(rows)
        if self._passed and rows:
            rows = self._without_passed(rows)
        self._bytes_read += self._fetching.size(rows)
        return self._fetching.decoded(rows, self._serdes) if rows else None

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        at = self._current()
        for row in waiting:
            partition = _partition_of(row)
            at[partition] = min(at[partition], Position(row.offset() or 0))
        return tuple(
            split.at(at[partition], self._last_read.get(partition)).to_split_position()
            for partition, split in self._splits.items()
        )

    def check_input(self, checkpoint_id: CheckpointId) -> None:
        if self._client is not None and self._splits:
            self._client.identity.check(checkpoint_id)

    def bound(self) -> bool:
        open_ended = [split for split in self._splits.values() if split.stop is None]
        if self._consumer is None or not open_ended:
            return True
        at = self._current()
        for partition, end in self._ends(self._consumer, [split.partition for split in open_ended]).items():
            self._splits[partition] = replace(self._splits[partition], stop=max(end, at[partition]))
        self._bounded = True
        return True

    def _ends(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, Position]:
        """Return where each partition ends now; at isolation level read_committed, where a reader can come to."""
        try:
            return {
                partition: Position(consumer.get_watermark_offsets(ClientPartition(*partition), timeout=END_SECONDS)[1])
                for partition in partitions
            }
        except KafkaException as error:
            raise failure("asking for the end of the input", error_of(error)) from error

    def finished(self) -> bool:
        return len(self._ended) == len(self._splits)

    def caught_up(self) -> frozenset[str]:
        left: set[TopicPartition] = set()
        if self._consumer is not None:
            for item in self._consumer.position(self._partitions):
                partition = TopicPartition(item.topic, item.partition)
                # What was reported when nothing was read yet is the start, or behind what is no record.
                at = max(item.offset, self._splits[partition].start)
                if partition not in self._ended and self._reported_ends.get(partition, -1) < at:
                    left.add(partition)
        return frozenset(map(str, self._splits.keys() - left))

    def pause(self, splits: frozenset[str]) -> bool:
        if self._consumer is not None:
            wanted = {partition for partition in self._splits if str(partition) in splits}
            self._resume(self._paused - wanted - self._ended)
            self._pause(wanted - self._paused - self._ended)
            self._paused = wanted
        return True

    def lag(self) -> int | None:
        if self._consumer is None:
            return 0
        lags = self.split_lags()
        return sum(lags.values()) if len(lags) == len(self._splits) else None

    def split_lags(self) -> Mapping[str, int]:
        if self._consumer is None:
            return {}
        at = self._current()
        ends = {
            partition: self._end_of(partition) if split.stop is None else split.stop
            for partition, split in self._splits.items()
        }
        return {str(partition): max(0, end - at[partition]) for partition, end in ends.items() if end is not None}

    def bytes_read(self) -> int:
        return self._bytes_read

    def commit_positions(self, checkpoint_id: CheckpointId, positions: Sequence[SplitPosition]) -> None:
        if self._consumer is None or not positions:
            return
        offsets = [
            group_offset(item, checkpoint_id, self._attempt) for item in partition_positions(positions) if not item.gone
        ]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            log.warning("the positions of checkpoint %d were not committed to the group: %s", checkpoint_id, error)

    def close(self) -> None:
        if self._consumer is not None:
            self._fetching.close()
            self._consumer.close()
            self._consumer = None
        self._serdes.close()
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _note_topics(self, splits: Sequence[PartitionSplit]) -> None:
        if self._client is None:
            return
        for topic, topic_id in {(split.partition.topic, split.topic_id) for split in splits}:
            read = [split.partition.partition for split in splits if split.partition.topic == topic]
            self._client.identity.note_input(topic, topic_id, read)

    def _wait(self, consumer: Consumer) -> None:
        """Nothing came: raise what this waits for in vain."""
        self._health.check(consumer)
        if self._client is not None and time.monotonic() - self._read_at > QUIET_SECONDS:
            self._client.identity.doubt()

    def _current(self) -> dict[TopicPartition, Position]:
        """Return the next offset of every split, its start where nothing was read yet."""
        at = {partition: split.start for partition, split in self._splits.items()}
        if self._consumer is not None:
            for partition, offset in self._read_up_to(self._consumer):
                if offset >= 0:
                    at[partition] = Position(offset)
        for partition in self._ended:
            stop = self._splits[partition].stop
            assert stop is not None
            at[partition] = max(stop, self._splits[partition].start)
        return at

    def _read_up_to(self, consumer: Consumer) -> Iterator[tuple[TopicPartition, int]]:
        """Yield every partition with the offset before which nothing is left to read, negative where none is known."""
        for item in consumer.position(self._partitions):
            partition = TopicPartition(item.topic, item.partition)
            if item.offset >= 0 and item.leader_epoch is not None and item.leader_epoch >= 0:
                self._last_read[partition] = LastRead(item.leader_epoch, Position(item.offset))
            yield partition, max(item.offset, self._reported_ends.get(partition, item.offset))

    def _end_of(self, partition: TopicPartition) -> int | None:
        """Return the end as the last fetch saw it."""
        assert self._consumer is not None
        _, high = self._consumer.get_watermark_offsets(ClientPartition(*partition), cached=True)
        return high if high >= 0 else None

    def _cut(self, rows: Sequence[Any]) -> Sequence[Any]:
        """End the splits that have reached their stop; drop what was read beyond it."""
        assert self._consumer is not None
        beyond: dict[tuple[str, int], int] = {}
        ending: set[TopicPartition] = set()
        for partition, offset in self._read_up_to(self._consumer):
            stop = self._splits[partition].stop
            if stop is None or offset < stop:
                continue
            if partition not in self._ended:
                ending.add(partition)
            if offset > stop and self._seen_beyond.get(partition) != offset:
                self._seen_beyond[partition] = offset
                beyond[partition] = stop
        if ending:
            self._ended |= ending
            self._pause(ending)
        if not beyond:
            return rows
        places = enumerate(places_of(rows))
        return take(rows, [index for index, place in places if not _is_beyond(*place, beyond)])

    def _without_passed(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Drop what another course of the job has written; forget partitions of which all that was is read."""
        kept = [
            index
            for index, (topic, number, offset) in enumerate(places_of(rows))
            if not is_in(self._passed.get(TopicPartition(topic, number), ()), offset)
        ]
        at = self._current()
        self._passed = {each: gaps for each, gaps in self._passed.items() if gaps[-1][1] > at[each]}
        return rows if len(kept) == len(rows) else take(rows, kept)

    def _resume(self, partitions: set[TopicPartition]) -> None:
        if self._consumer is not None and partitions:
            self._consumer.resume([ClientPartition(*partition) for partition in partitions])

    def _pause(self, partitions: set[TopicPartition]) -> None:
        if self._consumer is not None and partitions:
            self._consumer.pause([ClientPartition(*partition) for partition in partitions])

    def _take_error(self, report: ReadError) -> None:
        """Note what is no record; raise what can't be read over."""
        partition, offset, error = report
        if error.code() in _GONE:
            raise self._out_of_range(partition, error)
        if error.code() == KafkaError._PARTITION_EOF:
            self._reported_ends[partition] = offset
            return
        if error.code() in _UNKNOWN and self._client is not None:
            self._client.identity.check_if_answered()
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED and self._client is None:
            return  # librdkafka looks for the group's coordinator, whoever reads.
        if not error.retriable():
            raise failure(f"reading {partition}", error)
        log.warning("reading %s: %s", partition, error)

    def _out_of_range(self, partition: TopicPartition, error: KafkaError) -> ConfigurationError:
        """Return what it means that a position is not there: another topic has the name, or its records are gone."""
        if self._client is not None:
            self._client.identity.check_if_answered()
        assert self._consumer is not None
        position = self._current()[partition]
        problem = f"position {position} of {partition} is not there any more ({error.str()})"
        try:
            first, end = self._consumer.get_watermark_offsets(ClientPartition(*partition), timeout=END_SECONDS)
        except KafkaException:
            return ConfigurationError(problem)
        if position < first:
            return ConfigurationError(
                f"{problem}: the records before {first} were deleted before they were read, by retention or by hand. "
                "Start the job again: it says what is gone behind the latest checkpoint, and how to go on without it"
            )
        return ConfigurationError(
            f"{problem}: the partition ends at {end} now, so the brokers have lost records. Start the job again: it "
            "says what is lost of what was read before the latest checkpoint, and how to go on"
        )


def _partition_of(row: Row) -> TopicPartition:
    return TopicPartition(str(row.topic()), int(row.partition() or 0))


def _is_beyond(topic: str, partition: int, offset: int, stops: Mapping[tuple[str, int], int]) -> bool:
    stop = stops.get((topic, partition))
    return stop is not None and offset >= stop


def _consumer(config: dict[str, Any]) -> Consumer:
    try:
        return Consumer(config)
    except KafkaException as error:
        raise failure("making a consumer", error_of(error)) from error


def _log_commit(error: KafkaError | None, _partitions: list[ClientPartition]) -> None:
    if error is not None:
        log.warning("positions were not committed to the consumer group: %s", error)
