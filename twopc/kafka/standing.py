"""How stored positions stand against the brokers as they are now: what is still there, and how much has come since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from twopc.kafka.positions import PartitionPosition
from twopc.kafka.wire import EARLIEST, LATEST, ControlClient, TopicInfo
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import Position, TopicPartition


class Verdict(StrEnum):
    """Whether a position can be read from; the value is for people and scripts."""

    READABLE = "readable"
    DELETED = "deleted by retention"
    BEYOND = "beyond the end"
    RECREATED = "topic was recreated"
    GONE = "topic or partition is gone"


@dataclass(frozen=True, slots=True)
class Standing:
    """One position. `behind` is how far the end is that a read_committed reader sees; None where that means nothing."""

    partition: TopicPartition
    verdict: Verdict
    first: Position | None = None
    end: Position | None = None
    behind: int | None = None


class Offsets(Protocol):
    """What is asked; `ControlClient` is one."""

    def topics(self, names: Sequence[str]) -> dict[str, TopicInfo]: ...

    def offsets(self, at: dict[TopicPartition, int]) -> dict[TopicPartition, Position]: ...


def ask_standings(
    bootstrap_servers: str, properties: Mapping[str, Any], positions: Sequence[PartitionPosition]
) -> tuple[Standing, ...]:
    """Ask the brokers of a cluster, to which the properties give access; raise Unavailable if they don't answer."""
    with ControlClient(bootstrap_servers, properties) as client:
        return standings(client, positions)


def unreadable(client: Offsets, positions: Sequence[PartitionPosition]) -> dict[SplitPosition, str]:
    """Return those that can't be read from any more, each with what is gone, in words."""
    told = zip(positions, standings(client, positions), strict=True)
    gone = {held: standing for held, standing in told if standing.verdict is not Verdict.READABLE}
    return {held.to_split_position(): _gone(held, standing) for held, standing in gone.items()}


def _gone(held: PartitionPosition, standing: Standing) -> str:
    said = f"{held.partition} from offset {held.position} on ({standing.verdict})"
    if standing.verdict is Verdict.DELETED:
        return f"{said[:-1]}: the first record is at {standing.first} now)"
    return f"{said[:-1]}: it ends at {standing.end} now)" if standing.verdict is Verdict.BEYOND else said


def standings(client: Offsets, positions: Sequence[PartitionPosition]) -> tuple[Standing, ...]:
    """Compare each position with what there is."""
    topics = client.topics(sorted({held.partition.topic for held in positions}))
    there = [held.partition for held in positions if _is_there(held.partition, topics)]
    firsts = client.offsets(dict.fromkeys(there, EARLIEST))
    ends = client.offsets(dict.fromkeys(there, LATEST))
    return tuple(_standing(held, topics, firsts, ends) for held in positions)


def _is_there(partition: TopicPartition, topics: dict[str, TopicInfo]) -> bool:
    return partition.topic in topics and partition.partition < topics[partition.topic].partitions


def _standing(
    held: PartitionPosition,
    topics: dict[str, TopicInfo],
    firsts: dict[TopicPartition, Position],
    ends: dict[TopicPartition, Position],
) -> Standing:
    if not _is_there(held.partition, topics):
        return Standing(held.partition, Verdict.GONE)
    first, end = firsts[held.partition], ends[held.partition]
    if topics[held.partition.topic].topic_id != held.topic_id:
        return Standing(held.partition, Verdict.RECREATED, first, end)
    behind = end - held.position
    if behind < 0:
        return Standing(held.partition, Verdict.BEYOND, first, end)
    return Standing(held.partition, Verdict.DELETED if held.position < first else Verdict.READABLE, first, end, behind)
