"""The output topics that writers knew at a checkpoint, against those that are there now. Pure.

A start must not refuse what is another: what was written is out, and the job may go on. But readers see a difference
that nobody else tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from twopc.kafka.clients.control_client import TopicInfo
from twopc.kafka.positions.course import Written
from twopc.protocol.codec import Mismatch, from_json, to_json
from twopc.protocol.facts import KnownOutput


@dataclass(frozen=True, slots=True)
class KnownTopic:
    """A topic as its writer knew it; of one that the job itself reads, with what it had `written` there."""

    topic_id: str
    partitions: int
    written: Written | None = None

    @classmethod
    def of(cls, info: TopicInfo) -> KnownTopic:
        return cls(info.topic_id, info.partitions)


def known_topics(outputs: Iterable[KnownOutput]) -> dict[str, KnownTopic]:
    """Return what `known_outputs` made; what a sink of another kind has left under its name is passed over."""
    topics: dict[str, KnownTopic] = {}
    for known in outputs:
        with suppress(Mismatch):
            topics[known.name] = from_json(KnownTopic, known.facts)
    return topics


def known_outputs(topics: Mapping[str, KnownTopic], earlier: Iterable[KnownOutput]) -> list[KnownOutput]:
    """Return these topics as a snapshot has them, with those of `earlier` that are not among them."""
    now = [KnownOutput(name, _stored(known)) for name, known in topics.items()]
    return [*(output for output in earlier if output.name not in topics), *now]


def _stored(known: KnownTopic) -> dict[str, Any]:
    stored: dict[str, Any] = to_json(known)
    return {name: value for name, value in stored.items() if value is not None}


def changed_topics(
    before: Mapping[str, KnownTopic], now: Mapping[str, TopicInfo], counted_from: str = "from now on"
) -> list[str]:
    """Say of each topic that is another, or has other partitions, what follows from it, and from when on."""
    return [
        change
        for topic, known in before.items()
        if topic in now
        if (change := _change(topic, known, now[topic], counted_from)) is not None
    ]


def _change(topic: str, known: KnownTopic, now: TopicInfo, counted_from: str) -> str | None:
    if now.topic_id != known.topic_id:
        return (
            f"output topic {topic!r} was deleted and created again since this job wrote to it last: its id was "
            f"{known.topic_id}, and is {now.topic_id} now. What the old one held is gone, and this run writes what "
            "comes now: --from ID, or --from none, writes it again from an earlier checkpoint on, or from the beginning"
        )
    if now.partitions != known.partitions:
        return (
            f"output topic {topic!r} has {now.partitions} partitions, and had {known.partitions} when this job wrote "
            f"to it last: where keys choose the partition, records of one key come to another one {counted_from}, "
            "behind those in the old one in no order. Readers that keep state or order by key see such a key twice"
        )
    return None
