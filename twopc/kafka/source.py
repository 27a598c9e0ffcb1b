"""The Kafka source: a description that is copied to every subtask, and the plan that the driver makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError
from twopc.kafka.access import copy_with_access
from twopc.kafka.client_config import checked_consumer_properties, consumer_config
from twopc.kafka.direct import SubtaskClient
from twopc.kafka.grants import READ, require_group_grant, require_topic_grants
from twopc.kafka.group import group_standing
from twopc.kafka.identity import recreated_input
from twopc.kafka.offset_status import unreadable
from twopc.kafka.outage import leave_to_driver, watched
from twopc.kafka.patience import patiently
from twopc.kafka.positions import PartitionPosition, PartitionSplit, input_of, partition_positions
from twopc.kafka.preflight import bootstrap_servers_of, require_topics
from twopc.kafka.reader import KafkaReader, check_config
from twopc.kafka.start import GroupOffsets, StartupMode, checked_mode, resolve
from twopc.kafka.wire import EARLIEST, LATEST, ControlClient, TopicInfo
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import Position, TopicPartition
from twopc.serde import Bytes, Serde, checked_serde
from twopc.source import GroupStanding, Source, SourceReader, Split

BYTES: Serde = Bytes()

PLAN_BUDGET_SECONDS = 30.0


class KafkaSource(Source):
    """Reads the committed records of one topic or several.

    `group_id` is the job's name unless given: the consumer group that follows the job's positions, for monitoring and
    as a startup mode. `properties` are librdkafka's, for the consumers.
    """

    def __init__(
        self,
        topics: str | Sequence[str],
        *,
        key: Serde = BYTES,
        value: Serde = BYTES,
        group_id: str | None = None,
        start: StartupMode = GroupOffsets(),  # noqa: B008 - a frozen value
        bootstrap_servers: str | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        named = (topics,) if isinstance(topics, str) or not isinstance(topics, Iterable) else topics
        self.topics = tuple(dict.fromkeys(named))
        if not self.topics or not all(isinstance(topic, str) and topic for topic in self.topics):
            raise ConfigurationError(f"KafkaSource needs the name of a topic, or several, not {topics!r}")
        self.key = checked_serde("key of KafkaSource", key)
        self.value = checked_serde("value of KafkaSource", value)
        self.group_id = group_id
        self.start = checked_mode(start)
        self.bootstrap_servers = bootstrap_servers
        self.properties = checked_consumer_properties(properties or {})

    def describe(self) -> Mapping[str, Any]:
        return {
            "type": "KafkaSource",
            "topics": ",".join(self.topics),
            "key": self.key,
            "value": self.value,
            "start": self.start,
        }

    def group(self, context: JobContext) -> str:
        return self.group_id or context.job

    def cluster(self, context: JobContext) -> str:
        servers = bootstrap_servers_of(self.bootstrap_servers, context.settings)
        with ControlClient(servers, self.properties) as client:
            return client.cluster_id()

    def with_access(self, properties: Mapping[str, Any]) -> KafkaSource:
        return copy_with_access(self, properties)

    def watched(self, context: JobContext) -> AbstractContextManager[object]:
        return watched(bootstrap_servers_of(self.bootstrap_servers, context.settings), self.properties)

    def input_of(self, split: str) -> str:
        return input_of(split)

    def precedes(self, position: SplitPosition, later: SplitPosition) -> bool:
        one, other = partition_positions((position, later))
        return one.position < other.position and other.topic_id in ("", one.topic_id)

    def skips(self, split: Split) -> bool:
        return PartitionSplit.from_split(split).start > 0

    def plan(self, context: JobContext, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        servers = bootstrap_servers_of(self.bootstrap_servers, context.settings)
        check_config(self._config(context))
        held = {each.partition: each for each in self._own(restored.values())}
        with ControlClient(servers, self.properties) as client:
            # A broker that has just come back knows the coordinator of a group, or a leader, a little later.
            splits = patiently(lambda: self._splits(client, self.group(context), held, bounded), PLAN_BUDGET_SECONDS)
        return [split.to_split() for split in sorted(splits, key=lambda split: split.partition)]

    def unreadable(self, context: JobContext, positions: Iterable[SplitPosition]) -> dict[SplitPosition, str]:
        servers = bootstrap_servers_of(self.bootstrap_servers, context.settings)
        read = self._own(positions)
        with ControlClient(servers, self.properties) as client:
            return patiently(lambda: unreadable(client, read), PLAN_BUDGET_SECONDS)

    def standing(self, context: JobContext) -> GroupStanding:
        servers = bootstrap_servers_of(self.bootstrap_servers, context.settings)
        with ControlClient(servers, self.properties) as client:
            group = self.group(context)
            require_group_grant(client, group)
            return patiently(lambda: group_standing(client, group, self.topics, self.start), PLAN_BUDGET_SECONDS)

    def open(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        leave_to_driver()
        servers = bootstrap_servers_of(self.bootstrap_servers, context.settings)
        client = SubtaskClient.of(context, servers, self.properties)
        partitions = [PartitionSplit.from_split(split) for split in splits]
        return KafkaReader(self._config(context), self.key, self.value, partitions, client, context.attempt)

    def _own(self, positions: Iterable[SplitPosition]) -> tuple[PartitionPosition, ...]:
        """Return those of the topics that are read: a checkpoint may hold others, which somebody gave up."""
        return partition_positions(held for held in positions if input_of(held.split) in self.topics)

    def _config(self, context: JobContext) -> dict[str, Any]:
        servers = bootstrap_servers_of(self.bootstrap_servers, context.settings)
        return consumer_config(servers, self.group(context), self.properties)

    def _splits(
        self, client: ControlClient, group: str, restored: Mapping[TopicPartition, PartitionPosition], bounded: bool
    ) -> list[PartitionSplit]:
        require_topics(client, self.topics, "input")
        require_topic_grants(client, self.topics, READ)
        require_group_grant(client, group)
        topics = client.topics(self.topics)
        partitions = [TopicPartition(name, number) for name in self.topics for number in range(topics[name].partitions)]
        starts = self._starts(client, group, topics, partitions, restored)
        ends = client.offsets(dict.fromkeys(partitions, LATEST))
        _check_range(starts, client.offsets(dict.fromkeys(partitions, EARLIEST)), ends)
        stops = ends if bounded else {}
        return [PartitionSplit(each, topics[each.topic].topic_id, starts[each], stops.get(each)) for each in partitions]

    def _starts(
        self,
        client: ControlClient,
        group: str,
        topics: Mapping[str, TopicInfo],
        partitions: Sequence[TopicPartition],
        restored: Mapping[TopicPartition, PartitionPosition],
    ) -> dict[TopicPartition, Position]:
        """Take what was restored; a partition added since to a topic that was read starts at its first record."""
        known = {partition: _checked(restored[partition], topics) for partition in partitions if partition in restored}
        read_before = {partition.topic for partition in restored}
        added = [p for p in partitions if p not in known and p.topic in read_before]
        new = [p for p in partitions if p not in known and p.topic not in read_before]
        begun = resolve(self.start, client, group, {partition: topics[partition.topic].topic_id for partition in new})
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
