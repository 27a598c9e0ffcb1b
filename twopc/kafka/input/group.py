"""A consumer group: how far it is, which tells of runs that this run's ledger may not know; and its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from twopc.errors import Unavailable
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.clients.control_client import EARLIEST, ControlClient
from twopc.kafka.clients.failures import error_of
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.input.startup_modes import GroupOffsets, StartupMode
from twopc.kafka.positions.partition_position import PartitionPosition, split_positions
from twopc.kafka.positions.witness import WitnessMetadata
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.topics.grants import require_group_grant
from twopc.protocol.planned_starts import Witnessed
from twopc.source import Follower, FollowerStanding

ANSWER_SECONDS = 30.0
STANDING_BUDGET_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ConsumerGroup(Follower):
    """The group that follows a source's positions in these topics; `start` says whether reading may begin there."""

    name: str
    topics: tuple[str, ...]
    start: StartupMode
    servers: str
    properties: Mapping[str, Any]

    def cluster(self) -> str:
        with ControlClient(self.servers, self.properties) as client:
            return client.cluster_id()

    def standing(self) -> FollowerStanding:
        with ControlClient(self.servers, self.properties) as client:
            require_group_grant(client, self.name)
            return call_with_retry(
                lambda: group_standing(client, self.name, self.topics, self.start), STANDING_BUDGET_SECONDS
            )


def delete_group(cluster: Cluster, group: str) -> None:
    """Delete a group and its offsets; one that is not there is fine."""
    admin = AdminClient({**cluster.properties, "bootstrap.servers": cluster.servers})
    try:
        admin.delete_consumer_groups([group])[group].result(ANSWER_SECONDS)
    except KafkaException as error:
        if error_of(error).code() != KafkaError.GROUP_ID_NOT_FOUND:
            raise Unavailable(f"group {group!r} could not be deleted: {error}") from error
    except TimeoutError as error:
        raise Unavailable(f"group {group!r} could not be deleted: no answer from the brokers") from error


def group_standing(client: ControlClient, group: str, topics: Iterable[str], mode: StartupMode) -> FollowerStanding:
    """Ask for the group's positions in all partitions of these topics that are there."""
    found = client.topics(topics)
    partitions = [TopicPartition(name, number) for name, topic in found.items() for number in range(topic.partitions)]
    held = client.group_offsets(group, partitions) if partitions else {}
    parsed = {partition: witness for partition, at in held.items() if (witness := WitnessMetadata.parse(at.metadata))}
    void = {
        partition
        for partition, witness in parsed.items()
        if witness.topic_id not in ("", found[partition.topic].topic_id)
    }
    ours = [witness for partition, witness in parsed.items() if partition not in void]
    witnessed = Witnessed(
        max((witness.checkpoint_id for witness in ours), default=0),
        max((witness.attempt for witness in ours), default=0),
    )
    if not isinstance(mode, GroupOffsets) or not held:
        return FollowerStanding(witnessed)
    firsts = client.offsets(dict.fromkeys(held, EARLIEST))
    ahead = [
        PartitionPosition(partition, found[partition.topic].topic_id, at.position)
        for partition, at in sorted(held.items())
        if partition not in void and at.position > firsts[partition]
    ]
    return FollowerStanding(witnessed, split_positions(ahead))
