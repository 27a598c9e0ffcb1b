"""The startup modes of a source: five, with Flink's names, which the driver turns into offsets.

A symbolic start must be a number before the first record is read, or a restart before the first checkpoint would begin
somewhere else and skip what lay between.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from twopc.errors import ConfigurationError
from twopc.kafka.clients.control_client import EARLIEST, LATEST, ControlClient
from twopc.kafka.positions.partition_position import LastRead, PartitionPosition
from twopc.kafka.positions.witness import WitnessMetadata
from twopc.kafka.topic_partition import Position, TopicPartition

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """The consumer group's offsets; the earliest where it has none, or one of a topic that is gone."""


@dataclass(frozen=True, slots=True)
class Earliest:
    """The first record that is there."""


@dataclass(frozen=True, slots=True)
class Latest:
    """After the last record that is there when the job first starts."""


@dataclass(frozen=True, slots=True)
class Timestamp:
    """The first record whose timestamp is this or later, in Unix milliseconds; the end if there is none."""

    milliseconds: int


@dataclass(frozen=True, slots=True)
class Specific:
    """These offsets; the earliest for partitions that are not named."""

    offsets: tuple[tuple[TopicPartition, Position], ...]


StartupMode = GroupOffsets | Earliest | Latest | Timestamp | Specific


class StartingOffsets:
    """The startup modes, as a job names them: `KafkaSource("in", start=StartingOffsets.earliest())`."""

    @staticmethod
    def group_offsets() -> StartupMode:
        return GroupOffsets()

    @staticmethod
    def earliest() -> StartupMode:
        return Earliest()

    @staticmethod
    def latest() -> StartupMode:
        return Latest()

    @staticmethod
    def timestamp(milliseconds: int) -> StartupMode:
        if not isinstance(milliseconds, int) or milliseconds < 0:
            raise ConfigurationError(f"StartingOffsets.timestamp needs Unix milliseconds, not {milliseconds!r}")
        return Timestamp(milliseconds)

    @staticmethod
    def specific(offsets: Mapping[tuple[str, int], int]) -> StartupMode:
        for given in offsets.items():
            match given:
                case ((str(), int()), int()):
                    pass
                case _:
                    raise ConfigurationError(
                        f"StartingOffsets.specific needs offsets by partition, {{('topic', 0): 42}}, not {given}"
                    )
        named = {TopicPartition(*partition): Position(offset) for partition, offset in offsets.items()}
        if wrong := [f"{partition}: {offset}" for partition, offset in named.items() if offset < 0]:
            raise ConfigurationError(f"StartingOffsets.specific needs offsets of 0 or more, not {', '.join(wrong)}")
        return Specific(tuple(sorted(named.items())))


def checked_mode(mode: StartupMode) -> StartupMode:
    """Return what was given as a startup mode; raise ConfigurationError if it is none."""
    if not isinstance(mode, StartupMode):
        raise ConfigurationError(
            f"start of KafkaSource must be one of StartingOffsets, such as StartingOffsets.earliest(), not {mode!r}"
        )
    return mode


def resolve(
    mode: StartupMode, client: ControlClient, group: str, topic_ids: Mapping[TopicPartition, str]
) -> dict[TopicPartition, PartitionPosition]:
    """Return where to begin in every partition, given the ids that their topics have now."""
    match mode:
        case GroupOffsets():
            held = _held_by(group, client, topic_ids)
            return _at(dict.fromkeys(topic_ids.keys() - held.keys(), EARLIEST), client, topic_ids) | held
        case Earliest():
            return _at(dict.fromkeys(topic_ids, EARLIEST), client, topic_ids)
        case Latest():
            return _at(dict.fromkeys(topic_ids, LATEST), client, topic_ids)
        case Timestamp(milliseconds):
            return _at(dict.fromkeys(topic_ids, milliseconds), client, topic_ids)
        case Specific(offsets):
            named = {partition: at for partition, at in offsets if partition in topic_ids}
            given = {
                partition: PartitionPosition(partition, topic_ids[partition], at) for partition, at in named.items()
            }
            return _at(dict.fromkeys(topic_ids.keys() - named.keys(), EARLIEST), client, topic_ids) | given
        case _:
            assert_never(mode)


def _at(
    times: Mapping[TopicPartition, int], client: ControlClient, topic_ids: Mapping[TopicPartition, str]
) -> dict[TopicPartition, PartitionPosition]:
    found = client.offsets(times)
    return {partition: PartitionPosition(partition, topic_ids[partition], at) for partition, at in found.items()}


def _held_by(
    group: str, client: ControlClient, topic_ids: Mapping[TopicPartition, str]
) -> dict[TopicPartition, PartitionPosition]:
    """Return where the group stands in topics that are still the same, as far as it says which ones it has read."""
    held = client.group_offsets(group, list(topic_ids)) if topic_ids else {}
    found = {partition: WitnessMetadata.parse(item.metadata) for partition, item in held.items()}
    void = [
        partition
        for partition, witness in found.items()
        if witness is not None and witness.topic_id not in (topic_ids[partition], "")
    ]
    if void:
        topics = ", ".join(sorted({partition.topic for partition in void}))
        log.warning(
            "group %s stands in topics that were deleted and created again since (%s): its offsets there mean nothing "
            "now, and reading begins at the first record",
            *(group, topics),
        )
    return {
        each: PartitionPosition(
            each,
            topic_ids[each],
            item.position,
            read=None if item.epoch is None else LastRead(item.epoch, item.position),
        )
        for each, item in held.items()
        if each not in void
    }
