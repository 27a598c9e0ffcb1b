"""Input that was deleted before it was read: refused at a start, unless a person gives it up by name.

What is given up stands in the positions of all later checkpoints (`twopc.kafka.positions.partition_position`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from twopc.errors import ConfigurationError
from twopc.kafka.topic_partition import Position, TopicPartition

_GAP = re.compile(r"([a-zA-Z0-9._-]+)\[(\d+)\]@(\d+)-(\d+)", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class InputGap:
    """The offsets of a partition that are not there any more: from `first` to before `end`, which is there."""

    partition: TopicPartition
    first: Position
    end: Position

    def __str__(self) -> str:
        return f"{self.partition}@{self.first}-{self.end}"

    def covers(self, other: InputGap) -> bool:
        """Whether whoever gives this up gives up the other, too: it was to be read from the same offset on."""
        return (self.partition, self.first) == (other.partition, other.first) and self.end >= other.end


def accepted_gaps(names: Iterable[str]) -> tuple[InputGap, ...]:
    """Return what the setting accept_gap says; raise ConfigurationError for what is no gap."""
    return tuple(map(_parsed, names))


def _parsed(text: str) -> InputGap:
    found = _GAP.fullmatch(text)
    if found is None or int(found[3]) >= int(found[4]):
        raise ConfigurationError(
            f"accept_gap: {text!r} names no gap: write TOPIC[PARTITION]@FROM-TO, such as orders[0]@100-120 for the "
            "offsets 100 to 119, several separated by commas"
        )
    return InputGap(TopicPartition(found[1], int(found[2])), Position(int(found[3])), Position(int(found[4])))


def gaps_at(starts: Mapping[TopicPartition, Position], firsts: Mapping[TopicPartition, Position]) -> list[InputGap]:
    """Return what is gone between where reading is to begin and the first records that there are."""
    return [
        InputGap(partition, start, firsts[partition])
        for partition, start in sorted(starts.items())
        if start < firsts[partition]
    ]


def refuse_gaps(gaps: Iterable[InputGap], accepted: Iterable[InputGap]) -> None:
    """Raise ConfigurationError for gaps of which nobody said that they are given up."""
    every, given_up = list(gaps), list(accepted)
    refused = [gap for gap in every if not any(each.covers(gap) for each in given_up)]
    if not refused:
        return
    first, more = refused[0], f" (and in {len(refused) - 1} more partitions)" if len(refused) > 1 else ""
    raise ConfigurationError(
        f"{first.partition} should be read from offset {first.first}, but its first record is at {first.end} now: "
        f"{first.end - first.first} offsets were deleted before they were read, by retention or by hand{more}. To go "
        "on without them, with all states and all other positions as they are, say it once: --accept-gap "
        f"{','.join(map(str, every))}"
    )
