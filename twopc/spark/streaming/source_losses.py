"""Positions of a query that mean nothing any more: refused by name, unless a person gives up what was there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from twopc.errors import ConfigurationError
from twopc.kafka.clients.retry import backoff
from twopc.kafka.positions.offset_status import Offsets, OffsetStatus, Readability, offset_statuses
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.topics.topic_identity import GONE_SECONDS
from twopc.listing import listed
from twopc.spark.streaming.source_options import ACCEPT

Statuses = Mapping[PartitionPosition, OffsetStatus]
ReadablePositions = dict[PartitionPosition, PartitionPosition]


def readable_positions(
    client: Offsets, positions: Sequence[PartitionPosition], accepted: Collection[str]
) -> ReadablePositions:
    """Return what each position means now: itself, or what there is in its place where it is given up.

    One that is given up and has nothing in its place is left out. Raises ConfigurationError for what is lost else.
    """
    statuses = _statuses(client, positions)
    if _lost(statuses):
        # A broker that has just started may not know yet what there is.
        for _ in backoff(GONE_SECONDS):
            statuses = _statuses(client, positions)
            if not _lost(statuses):
                break
    lost = _lost(statuses)
    _refuse({position: status for position, status in lost.items() if str(position) not in accepted})
    return {position: position for position in statuses if position not in lost} | _instead(client, lost)


def refuse_unnamed(positions: Collection[PartitionPosition], accepted: Collection[str]) -> None:
    """Raise ConfigurationError for positions in topics that the options don't name, unless they are given up."""
    refused = [str(position) for position in positions if str(position) not in accepted]
    if refused:
        raise ConfigurationError(
            f"the query stands at {listed(refused)}, in topics that its options don't name any more. To leave unread "
            f"what is there, say option('{ACCEPT}', '{','.join(refused)}')"
        )


def _statuses(client: Offsets, positions: Sequence[PartitionPosition]) -> Statuses:
    return dict(zip(positions, offset_statuses(client, positions), strict=True)) if positions else {}


def _lost(statuses: Statuses) -> Statuses:
    return {position: status for position, status in statuses.items() if status.readability is not Readability.READABLE}


def _refuse(lost: Statuses) -> None:
    if lost:
        raise ConfigurationError(
            f"positions of the query can't be read from any more: {listed(map(_text, lost, lost.values()))}. What was "
            "read before is as it was; the records from there on are missing. To go on with what is there now, say "
            f"option('{ACCEPT}', '{','.join(map(str, lost))}')"
        )


def _text(position: PartitionPosition, status: OffsetStatus) -> str:
    return f"{position} ({status.readability}" + (f"; {status.first} to {status.end} are there)" if status.end else ")")


def _instead(client: Offsets, lost: Statuses) -> ReadablePositions:
    """Return where to go on: at the first record; at the end, where the end was lost."""
    found = {}
    topics = client.topics(sorted({position.partition.topic for position in lost}))
    for position, status in lost.items():
        at = status.end if status.readability is Readability.BEYOND else status.first
        if at is not None:
            found[position] = replace(position, topic_id=topics[position.partition.topic].topic_id, position=at)
    return found
