"""Compares stored positions with the offsets of the brokers now: whether each can be read, and how far behind it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from twopc.kafka.clients.control_client import EARLIEST, LATEST, ControlClient, TopicInfo
from twopc.kafka.positions.cut_log import EpochClient, find_cut_logs
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import SplitPosition


class Readability(StrEnum):
    """The readability of a position; the value is for people and scripts."""

    READABLE = "readable"
    DELETED = "deleted by retention"
    BEYOND = "beyond the end"
    CUT = "records that were read are lost"
    RECREATED = "topic was recreated"
    GONE = "topic or partition is gone"


@dataclass(frozen=True, slots=True)
class OffsetStatus:
    """One position. `behind` is its distance to the end that a read_committed reader sees, None where there is none."""

    partition: TopicPartition
    readability: Readability
    first: Position | None = None
    end: Position | None = None
    behind: int | None = None


class Offsets(EpochClient, Protocol):
    """The requests that this needs; `ControlClient` answers them."""

    def topics(self, names: Sequence[str]) -> dict[str, TopicInfo]: ...

    def offsets(self, at: dict[TopicPartition, int]) -> dict[TopicPartition, Position]: ...


def fetch_offset_statuses(
    bootstrap_servers: str, properties: Mapping[str, Any], positions: Sequence[PartitionPosition]
) -> tuple[OffsetStatus, ...]:
    """Compare with the brokers of one cluster; raise Unavailable if they don't answer."""
    with ControlClient(bootstrap_servers, properties) as client:
        return offset_statuses(client, positions)


def unreadable(client: Offsets, positions: Sequence[PartitionPosition]) -> dict[SplitPosition, str]:
    """Return the positions that can no longer be read from, each with the reason in words."""
    statuses = zip(positions, offset_statuses(client, positions), strict=True)
    gone = {held: status for held, status in statuses if status.readability is not Readability.READABLE}
    return {held.to_split_position(): _gone(held, status) for held, status in gone.items()}


def _gone(held: PartitionPosition, status: OffsetStatus) -> str:
    problem = f"{held.partition} from offset {held.position} on ({status.readability})"
    if status.readability is Readability.DELETED:
        return f"{problem[:-1]}: the first record is at {status.first} now)"
    return f"{problem[:-1]}: it ends at {status.end} now)" if status.readability is Readability.BEYOND else problem


def offset_statuses(client: Offsets, positions: Sequence[PartitionPosition]) -> tuple[OffsetStatus, ...]:
    """Compare each position with the first and the last offset of its partition, and with where its epoch ends."""
    topics = client.topics(sorted({held.partition.topic for held in positions}))
    there = [held.partition for held in positions if _is_there(held.partition, topics)]
    firsts = client.offsets(dict.fromkeys(there, EARLIEST))
    ends = client.offsets(dict.fromkeys(there, LATEST))
    same = [held for held in positions if held.partition in firsts and _is_same(held, topics)]
    cut = {log.partition for log in find_cut_logs(client, same)}
    return tuple(_status(held, topics, firsts, ends, cut) for held in positions)


def _is_there(partition: TopicPartition, topics: dict[str, TopicInfo]) -> bool:
    return partition.topic in topics and partition.partition < topics[partition.topic].partitions


def _is_same(held: PartitionPosition, topics: dict[str, TopicInfo]) -> bool:
    return topics[held.partition.topic].topic_id == held.topic_id


def _status(
    held: PartitionPosition,
    topics: dict[str, TopicInfo],
    firsts: dict[TopicPartition, Position],
    ends: dict[TopicPartition, Position],
    cut: Collection[TopicPartition],
) -> OffsetStatus:
    if not _is_there(held.partition, topics):
        return OffsetStatus(held.partition, Readability.GONE)
    first, end = firsts[held.partition], ends[held.partition]
    if not _is_same(held, topics):
        return OffsetStatus(held.partition, Readability.RECREATED, first, end)
    if held.partition in cut:
        return OffsetStatus(held.partition, Readability.CUT, first, end)
    behind = end - held.position
    if behind < 0:
        return OffsetStatus(held.partition, Readability.BEYOND, first, end)
    return OffsetStatus(
        held.partition, Readability.DELETED if held.position < first else Readability.READABLE, first, end, behind
    )
