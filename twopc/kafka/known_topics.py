"""The output topics that writers knew at a checkpoint, against those that are there now. Pure.

A start must not refuse what is another: what was written is out, and the job may go on. But readers see a difference
that nobody else tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from twopc.kafka.committable import PreparedTransaction
from twopc.kafka.control_client import TopicInfo
from twopc.protocol.ids import CheckpointId


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A topic as the writer of a transaction of this checkpoint knew it."""

    checkpoint_id: CheckpointId
    topic_id: str
    partitions: int


def newest_known(prepared: Iterable[PreparedTransaction]) -> dict[str, KnownTopic]:
    """Return each topic as the latest checkpoint among these has it."""
    return {
        topic: KnownTopic(each.checkpoint_id, topic_id, partitions)
        for each in sorted(prepared, key=lambda each: each.checkpoint_id)
        for topic, (topic_id, partitions) in each.known_topics.items()
    }


def changed_topics(before: Mapping[str, KnownTopic], now: Mapping[str, TopicInfo]) -> list[str]:
    """Say of each topic that is another, or has other partitions, what follows from it."""
    return [
        said
        for topic, known in before.items()
        if topic in now
        if (said := _change(topic, known, now[topic])) is not None
    ]


def _change(topic: str, known: KnownTopic, now: TopicInfo) -> str | None:
    if now.topic_id != known.topic_id:
        return (
            f"output topic {topic!r} was deleted and created again since checkpoint {known.checkpoint_id}: its id was "
            f"{known.topic_id}, and is {now.topic_id} now. What the old one held is gone, and this run writes what "
            "comes now: --from ID, or --from none, writes it again from an earlier checkpoint on, or from the beginning"
        )
    if now.partitions != known.partitions:
        return (
            f"output topic {topic!r} has {now.partitions} partitions, and had {known.partitions} at checkpoint "
            f"{known.checkpoint_id}: where keys choose the partition, records of one key come to another one from now "
            "on, behind those in the old one in no order. Readers that keep state or order by key see such a key twice"
        )
    return None
