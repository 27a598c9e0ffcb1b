"""The Kafka source: a description that is copied to every subtask, and opens nothing before it is told to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from datetime import timedelta
from typing import Any, ClassVar

from twopc.context import JobContext, SubtaskContext
from twopc.duration import duration_ms
from twopc.errors import ConfigurationError
from twopc.kafka.clients.access import copy_with_access
from twopc.kafka.clients.client_config import checked_consumer_properties, consumer_config
from twopc.kafka.clients.outage import leave_to_driver, watched
from twopc.kafka.input.planner import KafkaPlanner
from twopc.kafka.input.reader import KafkaReader
from twopc.kafka.input.startup_modes import Earliest, GroupOffsets, StartupMode, checked_mode
from twopc.kafka.positions.gaps import accepted_gaps
from twopc.kafka.positions.partition_position import PartitionSplit, input_of, partition_positions
from twopc.kafka.topics.preflight import bootstrap_servers_of, warn_of_internal_topics
from twopc.kafka.topics.subtask_client import SubtaskClient
from twopc.kafka.topics.topic_name import checked_topic
from twopc.kafka.topics.topic_pattern import checked_pattern
from twopc.protocol.facts import SplitPosition
from twopc.repartition import Repartition, RepartitionConnectors
from twopc.serde import BYTES, Serde, checked_serde
from twopc.source import Source, SourcePlanner, SourceReader, Split

OFF = "off"
WATCH_MS = 60_000
"""How often the input is looked at, unless a job says something else."""


class KafkaSource(Source):
    """Reads the committed records of one topic or several, or of those whose whole names match a regular expression.

    Which topics `pattern` names is found out at each start: those that are there, but for what `exclude` matches and
    Kafka's own. One that is new since the restored checkpoint is read from its first record; of one that is gone the
    positions are kept until they are given up (`drop_inputs`).
    Every minute, or at the interval that `discovery` says, such as "10s", the driver looks for new ones while the job
    runs, and for new partitions; a new attempt reads these too, each from its first record, once the next checkpoint
    has completed. More partitions of a topic that comes to state by key are told and not read, as keys move to them.
    With "off" all that is new is told, and read from the next start on.
    `group_id` is the job's name unless given: the consumer group that follows the job's positions, for monitoring and
    as a startup mode. `properties` are librdkafka's, for the consumers.
    """

    reader: ClassVar[type[KafkaReader]] = KafkaReader
    planner: ClassVar[type[KafkaPlanner]] = KafkaPlanner

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
        discovery: str | timedelta = "1m",
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
        self.reads_new = discovery != OFF
        self.watch_ms: int = _checked_interval(discovery) if self.reads_new else WATCH_MS
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
            **self._discovery,
        }

    @property
    def _discovery(self) -> Mapping[str, str]:
        """What differs from every minute."""
        if not self.reads_new:
            return {"discovery": OFF}
        return {} if self.watch_ms == WATCH_MS else {"discovery": f"{self.watch_ms / 1000:g}s"}

    def with_access(self, properties: Mapping[str, Any]) -> KafkaSource:
        return copy_with_access(self, properties)

    def from_beginning(self) -> KafkaSource:
        whole = copy(self)
        whole.start = Earliest()
        return whole

    def repartitioned(self, through: Repartition) -> RepartitionConnectors:
        # A sink, and the module of sinks imports this one.
        from twopc.kafka.repartition import repartitioned

        return repartitioned(self, through)

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
        planner = self.planner(
            topics=self.topics,
            group=self._group(context),
            start=self.start,
            servers=servers,
            properties=self.properties,
            pattern=self.pattern,
            key=self.key,
            value=self.value,
            accepted=accepted_gaps(context.settings.accept_gap),
            dropped=frozenset(context.settings.drop_inputs),
        )
        return planner.resolved()

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        leave_to_driver()
        servers = bootstrap_servers_of(self.bootstrap_servers, context.settings)
        client = SubtaskClient.of(context, servers, self.properties)
        config = consumer_config(servers, self._group(context), self.properties)
        partitions = [PartitionSplit.from_split(split) for split in splits]
        return self.reader(config, self.key, self.value, partitions, client, context.attempt)

    def _group(self, context: JobContext) -> str:
        return self.group_id or context.job


def _checked_interval(discovery: str | timedelta) -> int:
    try:
        interval_ms = duration_ms(discovery)
    except ValueError as error:
        raise ConfigurationError(
            f"KafkaSource can't take discovery={discovery!r}: {error}. With {OFF!r} what is new is read from the next "
            "start on"
        ) from error
    if interval_ms <= 0:
        raise ConfigurationError(
            f"KafkaSource can't look for new partitions every {discovery!r}: give a time such as 1m, or {OFF!r}"
        )
    return interval_ms


def _checked_topics(topics: str | Sequence[str]) -> tuple[str, ...]:
    named = (topics,) if isinstance(topics, str) or not isinstance(topics, Iterable) else topics
    distinct = tuple(dict.fromkeys(named))
    if not distinct or not all(isinstance(topic, str) and topic for topic in distinct):
        raise ConfigurationError(
            f"KafkaSource needs the name of a topic, or several, or pattern=r'...' that matches names, not {topics!r}"
        )
    return tuple(checked_topic("KafkaSource", topic) for topic in distinct)
