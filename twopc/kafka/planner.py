"""The plan of a Kafka source: what the driver asks the brokers before anything is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from twopc.errors import ConfigurationError
from twopc.input_now import HiddenInput, Places
from twopc.kafka.client_config import consumer_config
from twopc.kafka.control_client import EARLIEST, LATEST, ControlClient, TopicInfo
from twopc.kafka.grants import READ, require_group_grant, require_topic_grants
from twopc.kafka.group import ConsumerGroup
from twopc.kafka.hidden_input import hidden
from twopc.kafka.offset_status import unreadable
from twopc.kafka.positions import PartitionPosition, PartitionSplit, input_of, partition_positions
from twopc.kafka.preflight import require_topics
from twopc.kafka.reader import check_config
from twopc.kafka.retry import call_with_retry
from twopc.kafka.startup_modes import Earliest, StartupMode, resolve
from twopc.kafka.topic_identity import recreated_input
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topic_pattern import TopicPattern
from twopc.kafka.topic_serdes import TopicSerdes
from twopc.protocol.facts import SplitPosition
from twopc.serde import Serde
from twopc.source import Follower, SourcePlanner, Split

PLAN_BUDGET_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class KafkaPlanner(SourcePlanner):
    """Plans the partitions of these topics, or of those that match; connects anew for each question."""

    topics: tuple[str, ...]
    group: str
    start: StartupMode
    servers: str
    properties: Mapping[str, Any]
    pattern: TopicPattern | None
    key: Serde
    value: Serde

    def resolved(self) -> Self:
        """Return this planner with the topics that match the pattern now."""
        if self.pattern is None:
            return self
        with self.connect() as client:
            names = call_with_retry(client.topic_names, PLAN_BUDGET_SECONDS)
        return replace(self, topics=self.pattern.among(names))

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        held = {each.partition: each for each in self._own(restored.values())}
        with self.connect() as client:
            # A broker that has just come back knows the coordinator of a group, or a leader, a little later.
            splits = call_with_retry(lambda: self._splits(client, held, bounded), PLAN_BUDGET_SECONDS)
        # A serde that can't work for a topic says so when it is opened: here, before a record is read.
        TopicSerdes(self.key, self.value, self.topics).close()
        return [split.to_split() for split in sorted(splits, key=lambda split: split.partition)]

    def added(self, read: Sequence[Split]) -> list[Split]:
        known = {split.id for split in read}
        with self.connect() as client:
            splits = call_with_retry(lambda: self._added(client, known), PLAN_BUDGET_SECONDS)
        return [split.to_split() for split in splits]

    def hidden(self, read: Sequence[Split], before: Places | None) -> list[HiddenInput]:
        partitions = [PartitionSplit.from_split(split).partition for split in read]
        with self.connect() as client:
            found = call_with_retry(lambda: hidden(client, partitions), PLAN_BUDGET_SECONDS)
            return [
                HiddenInput(
                    str(each.partition),
                    each.end,
                    each.named(client) if before is None or (str(each.partition), each.end) in before else "",
                )
                for each in found
            ]

    def past_all(self, positions: Iterable[SplitPosition]) -> list[SplitPosition]:
        held = self._own(positions)
        with self.connect() as client:
            ends = call_with_retry(
                lambda: client.high_watermarks([each.partition for each in held]), PLAN_BUDGET_SECONDS
            )
        return [replace(each, position=ends[each.partition]).to_split_position() for each in held]

    def unreadable(self, positions: Iterable[SplitPosition]) -> dict[SplitPosition, str]:
        read = self._own(positions)
        with self.connect() as client:
            return call_with_retry(lambda: unreadable(client, read), PLAN_BUDGET_SECONDS)

    def follower(self) -> Follower:
        return ConsumerGroup(self.group, self.topics, self.start, self.servers, self.properties)

    def connect(self) -> ControlClient:
        """Connect to the brokers, by settings that the consumers take too."""
        check_config(consumer_config(self.servers, self.group, self.properties))
        return ControlClient(self.servers, self.properties)

    def _own(self, positions: Iterable[SplitPosition]) -> tuple[PartitionPosition, ...]:
        """Return those of the topics that are read: a checkpoint may hold others, which somebody gave up."""
        return partition_positions(held for held in positions if input_of(held.split) in self.topics)

    def _splits(
        self, client: ControlClient, restored: Mapping[TopicPartition, PartitionPosition], bounded: bool
    ) -> list[PartitionSplit]:
        require_topics(client, self.topics, "input")
        require_topic_grants(client, self.topics, READ)
        require_group_grant(client, self.group)
        topics = client.topics(self.topics)
        partitions = [TopicPartition(name, number) for name in self.topics for number in range(topics[name].partitions)]
        starts = self._starts(client, topics, partitions, restored)
        ends = client.offsets(dict.fromkeys(partitions, LATEST))
        beyond = [each for each in partitions if starts[each] > ends[each]]
        # What somebody else has committed to the group may stand behind what readers of committed records see.
        log_ends = {**ends, **client.high_watermarks(beyond)} if beyond else ends
        _check_range(starts, client.offsets(dict.fromkeys(partitions, EARLIEST)), log_ends)
        stops = {each: max(starts[each], end) for each, end in ends.items()} if bounded else {}
        return [PartitionSplit(each, topics[each.topic].topic_id, starts[each], stops.get(each)) for each in partitions]

    def _added(self, client: ControlClient, known: Collection[str]) -> list[PartitionSplit]:
        topics = client.topics(self.topics)
        every = (TopicPartition(name, number) for name, info in topics.items() for number in range(info.partitions))
        added = sorted(each for each in every if str(each) not in known)
        if not added:
            return []
        require_topic_grants(client, sorted({each.topic for each in added}), READ)
        firsts = client.offsets(dict.fromkeys(added, EARLIEST))
        return [PartitionSplit(each, topics[each.topic].topic_id, firsts[each], None) for each in added]

    def _starts(
        self,
        client: ControlClient,
        topics: Mapping[str, TopicInfo],
        partitions: Sequence[TopicPartition],
        restored: Mapping[TopicPartition, PartitionPosition],
    ) -> dict[TopicPartition, Position]:
        """Take what was restored; a partition added since to a topic that was read starts at its first record.

        So does a topic that matches a pattern since.
        """
        known = {partition: _checked(restored[partition], topics) for partition in partitions if partition in restored}
        read_before = {partition.topic for partition in restored}
        added = [p for p in partitions if p not in known and p.topic in read_before]
        new = {p: topics[p.topic].topic_id for p in partitions if p not in known and p.topic not in read_before}
        begun = resolve(Earliest() if self.pattern and restored else self.start, client, self.group, new)
        return known | client.offsets(dict.fromkeys(added, EARLIEST)) | begun


def _checked(restored: PartitionPosition, topics: Mapping[str, TopicInfo]) -> Position:
    topic = restored.partition.topic
    if restored.topic_id != topics[topic].topic_id:
        raise ConfigurationError(recreated_input(topic, restored.topic_id, topics[topic].topic_id))
    return restored.position


def _starting_at(starts: Mapping[TopicPartition, Position], firsts: Mapping[TopicPartition, Position]) -> str:
    """The start that goes on where each partition stands, or at its first record where that is gone."""
    if all(start < firsts[partition] for partition, start in starts.items()):
        return "StartingOffsets.earliest()"
    offsets = (f"({each.topic!r}, {each.partition}): {max(start, firsts[each])}" for each, start in starts.items())
    return f"StartingOffsets.specific({{{', '.join(offsets)}}})"


def _check_range(
    starts: Mapping[TopicPartition, Position],
    firsts: Mapping[TopicPartition, Position],
    ends: Mapping[TopicPartition, Position],
) -> None:
    for partition, start in starts.items():
        first, end = firsts[partition], ends[partition]
        if start < first:
            raise ConfigurationError(
                f"{partition} should be read from offset {start}, but its first record is at {first} now: "
                f"{first - start} offsets were deleted by retention before they were read. To go on without them, "
                f"start without the checkpoint (--from none) and with start={_starting_at(starts, firsts)}"
            )
        if start > end:
            raise ConfigurationError(
                f"{partition} should be read from offset {start}, but it ends at {end}: records were lost on the "
                "broker, or the offset is wrong"
            )
