"""The Kafka source: a description that is copied to every subtask, and opens nothing before it is told to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from twopc.context import JobContext, SubtaskContext
from twopc.errors import ConfigurationError
from twopc.kafka.access import copy_with_access
from twopc.kafka.client_config import checked_consumer_properties, consumer_config
from twopc.kafka.outage import leave_to_driver, watched
from twopc.kafka.planner import KafkaPlanner
from twopc.kafka.positions import PartitionSplit, input_of, partition_positions
from twopc.kafka.preflight import bootstrap_servers_of, warn_of_internal_topics
from twopc.kafka.reader import KafkaReader
from twopc.kafka.start import GroupOffsets, StartupMode, checked_mode
from twopc.kafka.subtask_client import SubtaskClient
from twopc.kafka.topic_pattern import checked_pattern
from twopc.protocol.facts import SplitPosition
from twopc.serde import Bytes, Serde, checked_serde
from twopc.source import Source, SourcePlanner, SourceReader, Split

BYTES: Serde = Bytes()


class KafkaSource(Source):
    """Reads the committed records of one topic or several, or of those whose whole names match a regular expression.

    Which topics `pattern` names is found out at each start: those that are there, but for what `exclude` matches and
    Kafka's own. One that is new since the restored checkpoint is read from its first record; of one that is gone the
    positions have to be given up (`drop_inputs`).
    `group_id` is the job's name unless given: the consumer group that follows the job's positions, for monitoring and
    as a startup mode. `properties` are librdkafka's, for the consumers.
    """

    def __init__(
        self,
        topics: str | Sequence[str] = (),
        *,
        pattern: str | None = None,
        exclude: str | Sequence[str] = (),
        key: Serde = BYTES,
        value: Serde = BYTES,
        group_id: str | None = None,
        start: StartupMode = GroupOffsets(),  # noqa: B008 - a frozen value
        bootstrap_servers: str | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self.inputs = _checked_topics(topics) if pattern is None else ()
        if (pattern is not None and topics) or (pattern is None and exclude):
            raise ConfigurationError("KafkaSource needs topics, or a pattern= with or without exclude=, not both")
        self.pattern = None if pattern is None else checked_pattern(pattern, exclude)
        self.key = checked_serde("key of KafkaSource", key)
        self.value = checked_serde("value of KafkaSource", value)
        self.group_id = group_id
        self.start = checked_mode(start)
        self.bootstrap_servers = bootstrap_servers
        self.properties = checked_consumer_properties(properties or {})

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics to read: a source of Kafka's has no other inputs. None are known where a pattern names them."""
        return self.inputs

    def describe(self) -> Mapping[str, Any]:
        return {
            "type": "KafkaSource",
            **({"topics": ",".join(self.topics)} if self.pattern is None else {"pattern": str(self.pattern)}),
            "key": self.key,
            "value": self.value,
            "start": self.start,
        }

    def with_access(self, properties: Mapping[str, Any]) -> KafkaSource:
        return copy_with_access(self, properties)

    def watched(self, context: JobContext) -> AbstractContextManager[object]:
        warn_of_internal_topics(self.topics, "read")
        return watched(bootstrap_servers_of(self.bootstrap_servers, context.settings), self.properties)

    def input_of(self, split: str) -> str:
        return input_of(split)

    def reads(self, name: str) -> bool:
        return name in self.topics if self.pattern is None else self.pattern.matches(name)

    def precedes(self, position: SplitPosition, later: SplitPosition) -> bool:
        one, other = partition_positions((position, later))
        return one.position < other.position and other.topic_id in ("", one.topic_id)

    def skips(self, split: Split) -> bool:
        return PartitionSplit.from_split(split).start > 0

    def open_planner(self, context: JobContext) -> SourcePlanner:
        servers = bootstrap_servers_of(self.bootstrap_servers, context.settings)
        return KafkaPlanner(
            self.topics, self._group(context), self.start, servers, self.properties, self.pattern
        ).resolved()

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        leave_to_driver()
        servers = bootstrap_servers_of(self.bootstrap_servers, context.settings)
        client = SubtaskClient.of(context, servers, self.properties)
        config = consumer_config(servers, self._group(context), self.properties)
        partitions = [PartitionSplit.from_split(split) for split in splits]
        return KafkaReader(config, self.key, self.value, partitions, client, context.attempt)

    def _group(self, context: JobContext) -> str:
        return self.group_id or context.job


def _checked_topics(topics: str | Sequence[str]) -> tuple[str, ...]:
    named = (topics,) if isinstance(topics, str) or not isinstance(topics, Iterable) else topics
    distinct = tuple(dict.fromkeys(named))
    if not distinct or not all(isinstance(topic, str) and topic for topic in distinct):
        raise ConfigurationError(
            f"KafkaSource needs the name of a topic, or several, or pattern=r'...' that matches names, not {topics!r}"
        )
    return distinct
