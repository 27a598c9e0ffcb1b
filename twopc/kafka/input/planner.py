"""The plan of a Kafka source: what the driver asks the brokers before anything is read."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from twopc.errors import ConfigurationError
from twopc.input_now import HiddenInput, Places
from twopc.kafka.clients.client_config import consumer_config
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.clients.control_client import EARLIEST, LATEST, ControlClient, TopicInfo
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.input.group import ConsumerGroup
from twopc.kafka.input.hidden_input import hidden
from twopc.kafka.input.key_ways import sampled
from twopc.kafka.input.reader import check_config
from twopc.kafka.input.startup_modes import Earliest, StartupMode, resolve
from twopc.kafka.positions.cut_log import CutLog, find_cut_logs, short_logs, starts_in_cut_logs
from twopc.kafka.positions.gaps import InputGap, gaps_at, refuse_gaps
from twopc.kafka.positions.offset_status import unreadable
from twopc.kafka.positions.partition_position import PartitionPosition, PartitionSplit, input_of, partition_positions
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.kafka.topic_serdes import TopicSerdes
from twopc.kafka.topics.grants import READ, require_group_grant, require_topic_grants
from twopc.kafka.topics.preflight import require_topics
from twopc.kafka.topics.topic_identity import deleted_input, recreated_input
from twopc.kafka.topics.topic_pattern import TopicPattern
from twopc.key_spread import KeySample
from twopc.protocol.facts import SplitPosition
from twopc.serde import Serde
from twopc.source import Follower, SourcePlanner, Split

PLAN_BUDGET_SECONDS = 30.0

log = logging.getLogger(__name__)


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
    accepted: tuple[InputGap, ...]
    dropped: frozenset[str]

    def resolved(self) -> Self:
        """Return this planner with the topics that match the pattern now."""
        if self.pattern is None:
            return self
        with self.connect() as client:
            names = call_with_retry(client.topic_names, PLAN_BUDGET_SECONDS)
        return replace(self, topics=self.pattern.among(names))

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        held = {position.partition: position for position in self._own(restored.values())}
        with self.connect() as client:
            # A broker that has just come back knows the coordinator of a group, or a leader, a little later.
            splits = call_with_retry(lambda: self._splits(client, held, bounded), PLAN_BUDGET_SECONDS)
        splits += self._gone(restored.values())
        # A serde that can't work for a topic says so when it is opened: here, before a record is read.
        TopicSerdes(self.key, self.value, self.topics).close()
        return [split.to_split() for split in sorted(splits, key=lambda split: split.partition)]

    def added(self, read: Sequence[Split]) -> list[Split]:
        with self.connect() as client:
            splits = call_with_retry(lambda: self._added(client, _partitions_of(read)), PLAN_BUDGET_SECONDS)
        return [split.to_split() for split in splits]

    def hidden(self, read: Sequence[Split], before: Places | None) -> list[HiddenInput]:
        partitions = [split.partition for split in _partitions_of(read) if not split.gone]
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

    def key_samples(self, read: Sequence[Split]) -> list[KeySample]:
        return sampled(
            Cluster(self.servers, self.properties), [split for split in _partitions_of(read) if not split.gone]
        )

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
        topics = self._required(client, restored)
        partitions = [TopicPartition(name, number) for name in self.topics for number in range(topics[name].partitions)]
        begins = self._begins(client, topics, partitions, restored)
        begins |= self._begun_anew(begins, find_cut_logs(client, list(begins.values())))
        ends = client.offsets(dict.fromkeys(partitions, LATEST))
        begins |= self._begun_anew(begins, short_logs(begins.values(), self._log_ends(client, begins, ends)))
        gaps = self._given_up(client, begins)
        return [
            _split(begins[partition], gaps.get(partition), ends[partition] if bounded else None)
            for partition in partitions
        ]

    def _required(
        self, client: ControlClient, restored: Mapping[TopicPartition, PartitionPosition]
    ) -> dict[str, TopicInfo]:
        """Return the topics; raise ConfigurationError if one is not there, or may not be read."""
        there = client.topics(self.topics)
        for at in restored.values():
            if at.partition.topic not in there:
                raise ConfigurationError(deleted_input(at.partition.topic, at.topic_id))
        require_topics(client, self.topics, "input")
        require_topic_grants(client, self.topics, READ)
        require_group_grant(client, self.group)
        return client.topics(self.topics)

    def _log_ends(
        self,
        client: ControlClient,
        begins: Mapping[TopicPartition, PartitionPosition],
        ends: Mapping[TopicPartition, Position],
    ) -> dict[TopicPartition, Position]:
        """Return where each partition ends, at least where what readers of committed records see is too little.

        What somebody else has committed to the group may stand behind that.
        """
        beyond = [partition for partition, at in begins.items() if at.position > ends[partition]]
        return {**ends, **client.high_watermarks(beyond)} if beyond else dict(ends)

    def _given_up(
        self, client: ControlClient, begins: Mapping[TopicPartition, PartitionPosition]
    ) -> dict[TopicPartition, InputGap]:
        """Return what is gone before it was read, as a person has accepted; raise ConfigurationError for more."""
        starts = {partition: at.position for partition, at in begins.items()}
        gaps = gaps_at(starts, client.offsets(dict.fromkeys(starts, EARLIEST)))
        refuse_gaps(gaps, self.accepted)
        for gap in gaps:
            log.warning("given up, as asked (--accept-gap): %s, %d offsets", gap, gap.end - gap.first)
        return {gap.partition: gap for gap in gaps}

    def _begun_anew(
        self, begins: Mapping[TopicPartition, PartitionPosition], cuts: Sequence[CutLog]
    ) -> dict[TopicPartition, PartitionPosition]:
        """Return where reading begins in logs that aren't those that were read, as a person has accepted."""
        starts = starts_in_cut_logs(cuts, self.accepted)
        for partition, start in starts.items():
            log.warning("read from %d on, as asked (--accept-gap): %s, of which records were lost", start, partition)
        return {each: replace(begins[each], position=start, read=None) for each, start in starts.items()}

    def _gone(self, restored: Iterable[SplitPosition]) -> list[PartitionSplit]:
        """Return the partitions of topics that the pattern names and that aren't there: their positions are kept."""
        if self.pattern is None:
            return []
        named = [held for held in restored if self.pattern.matches(input_of(held.split))]
        left = {input_of(held.split) for held in named} - {*self.topics, *self.dropped}
        for topic in sorted(left):
            log.warning(
                "input topic %r, which %s names, is not there. Its positions are kept, and the others are read: to "
                "give them up, start once with --drop-inputs %s",
                *(topic, self.pattern, topic),
            )
        gone = partition_positions(held for held in named if input_of(held.split) in left)
        return [
            PartitionSplit(at.partition, at.topic_id, at.position, at.position, at.gaps, True, at.read) for at in gone
        ]

    def _added(self, client: ControlClient, read: Sequence[PartitionSplit]) -> list[PartitionSplit]:
        topics = client.topics(self.topics)
        known = {split.partition for split in read if not split.gone}
        for split in read:
            if split.gone and split.partition.topic in topics:
                _checked(split.at(split.start), topics)
        every = (TopicPartition(name, number) for name, info in topics.items() for number in range(info.partitions))
        added = sorted(partition for partition in every if partition not in known)
        if not added:
            return []
        require_topic_grants(client, sorted({partition.topic for partition in added}), READ)
        firsts = client.offsets(dict.fromkeys(added, EARLIEST))
        return [
            PartitionSplit(partition, topics[partition.topic].topic_id, firsts[partition], None) for partition in added
        ]

    def _begins(
        self,
        client: ControlClient,
        topics: Mapping[str, TopicInfo],
        partitions: Sequence[TopicPartition],
        restored: Mapping[TopicPartition, PartitionPosition],
    ) -> dict[TopicPartition, PartitionPosition]:
        """Take what was restored; a partition added since to a topic that was read starts at its first record.

        So does a topic that matches a pattern since.
        """
        known = {
            each: _checked(restored[each], topics)
            for each in partitions
            if each in restored and not self._is_new(restored[each], topics)
        }
        read_before = {partition.topic for partition in known}
        ids = {each: topics[each.topic].topic_id for each in partitions if each not in known}
        added = {each: ids[each] for each in ids if each.topic in read_before}
        new = {each: ids[each] for each in ids if each.topic not in read_before}
        begun = resolve(Earliest() if self.pattern and restored else self.start, client, self.group, new)
        return known | resolve(Earliest(), client, self.group, added) | begun

    def _is_new(self, held: PartitionPosition, topics: Mapping[str, TopicInfo]) -> bool:
        """Whether the topic is another one now, and a person gave up what was read of the old one."""
        topic = held.partition.topic
        return topic in self.dropped and held.topic_id != topics[topic].topic_id


def _partitions_of(splits: Sequence[Split]) -> list[PartitionSplit]:
    return list(map(PartitionSplit.from_split, splits))


def _split(at: PartitionPosition, gap: InputGap | None, end: Position | None) -> PartitionSplit:
    """Return what is read from a position on, or behind a gap there, and up to the end."""
    start = at.position if gap is None else gap.end
    own = () if gap is None else ((gap.first, gap.end),)
    stop = None if end is None else max(start, end)
    return PartitionSplit(at.partition, at.topic_id, start, stop, at.gaps + own, read=at.read, passed=at.passed)


def _checked(restored: PartitionPosition, topics: Mapping[str, TopicInfo]) -> PartitionPosition:
    topic = restored.partition.topic
    if restored.topic_id != topics[topic].topic_id:
        raise ConfigurationError(recreated_input(topic, restored.topic_id, topics[topic].topic_id))
    return restored
