"""The extent of whole topics when they are looked at, to be judged from their first record on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from twopc.errors import ConfigurationError
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.input.topic_reader import Ranges, ranges_of
from twopc.kafka.topic_partition import Position, TopicPartition


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of topics: where their records begin and end, as a reader sees it, per partition.

    `log_ends` is where the log itself ended a moment later: what became of a record's transaction may stand beyond the
    last record that a read_committed reader sees.
    """

    firsts: Mapping[TopicPartition, Position]
    ends: Mapping[TopicPartition, Position]
    log_ends: Mapping[TopicPartition, Position] = field(default_factory=dict)

    @property
    def ranges(self) -> Ranges:
        return {partition: (self.firsts[partition], end) for partition, end in self.ends.items()}

    @property
    def offsets(self) -> int:
        return sum(end - self.firsts[partition] for partition, end in self.ends.items())


def extent(client: ControlClient, topics: tuple[str, ...], role: str) -> Extent:
    """Return the extent now; raise ConfigurationError if a topic is missing, or doesn't begin at its beginning."""
    found = client.topics(topics)
    if missing := [topic for topic in topics if topic not in found]:
        raise ConfigurationError(f"there is no {role} topic {', '.join(map(repr, missing))}")
    ranges = ranges_of(client, found)
    firsts = {partition: first for partition, (first, _) in ranges.items()}
    if gone := {partition: first for partition, first in firsts.items() if first > 0}:
        which = ", ".join(f"{partition} up to offset {first}" for partition, first in sorted(gone.items()))
        raise ConfigurationError(
            f"the beginning of the {role} is gone, deleted by retention or by hand: {which}. What was there can't be "
            "judged any more: verify while retention still has all of both topics"
        )
    return Extent(firsts, {partition: end for partition, (_, end) in ranges.items()})
