"""The few scratch things that a drill creates and deletes on the brokers; all else that it asks them is reading.

Invariant: only names that begin with `scratch.PREFIX` are created or deleted.
"""

from __future__ import annotations

from collections.abc import Mapping

from twopc.drill.scratch_job import PREFIX
from twopc.kafka.clients.cluster import Cluster
from twopc.kafka.input.group import delete_group


def create_scratch_topic(
    cluster: Cluster, topic: str, partitions: int, settings: Mapping[str, str] | None = None
) -> None:
    """Create a topic, and return when every partition has a leader."""
    assert topic.startswith(PREFIX), "a drill creates scratch topics only"
    with cluster.client() as client:
        client.create_topic(topic, partitions, settings=settings)


def delete_scratch_topic(cluster: Cluster, topic: str) -> None:
    """Delete a topic; one that is not there is fine."""
    assert topic.startswith(PREFIX), "a drill deletes scratch topics only"
    with cluster.client() as client:
        if client.topics([topic]):
            client.delete_topic(topic)


def delete_scratch_group(cluster: Cluster, group: str) -> None:
    """Delete a consumer group; one that is not there is fine."""
    assert group.startswith(PREFIX), "a drill deletes scratch groups only"
    delete_group(cluster, group)
