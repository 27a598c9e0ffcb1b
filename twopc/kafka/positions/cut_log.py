"""Input that brokers have lost after it was read: a log was cut off, and other records have its offsets now.

A log whose leader lacked records (unclean election), or that was put back from a copy, ends before the position of the
job, and goes on from there with records that nobody has read. The offset alone doesn't tell: a broker is asked where
the leader epoch ends of which the job has read last (KIP-320). Refused at a start, unless a person accepts it by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from twopc.errors import ConfigurationError
from twopc.kafka.positions.gaps import InputGap
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.topic_partition import Position, TopicPartition

EpochEnds = Mapping[TopicPartition, Position | None]
"""Where leader epochs end, as brokers know them; None of one that they don't know. Who can't tell has no entry."""


@dataclass(frozen=True, slots=True)
class CutLog:
    """A partition of which only what is before `end` is what was read, up to `position`; None if nobody knows.

    `epoch` is that of what was read last, None of a position without one, behind which there is nothing.
    """

    partition: TopicPartition
    epoch: int | None
    end: Position | None
    position: Position

    def accepted_start(self, accepted: Iterable[InputGap]) -> Position | None:
        """Return where reading begins if a person has accepted it, None if nobody has."""
        return next((gap.first for gap in accepted if self._is_named_by(gap)), None)

    def _is_named_by(self, accepted: InputGap) -> bool:
        begins = accepted.first == self.end or (self.end is None and accepted.first <= self.position)
        return accepted.partition == self.partition and begins and accepted.end >= self.position


class EpochClient(Protocol):
    """The client that is asked; `ControlClient` is one."""

    def epoch_ends(self, epochs: dict[TopicPartition, int]) -> dict[TopicPartition, Position | None]: ...


def find_cut_logs(client: EpochClient, held: Sequence[PartitionPosition]) -> list[CutLog]:
    """Ask where the epochs of these positions end, which are of topics that are there; return whose logs were cut."""
    return cut_logs(
        held,
        client.epoch_ends({position.partition: position.read.epoch for position in held if position.read is not None}),
    )


def cut_logs(held: Iterable[PartitionPosition], ends: EpochEnds) -> list[CutLog]:
    """Return the partitions whose logs are not those that were read; a position without an epoch is not judged."""
    found = []
    for position in held:
        if position.read is None or position.partition not in ends:
            continue
        # Behind the last record may be markers, which may be of a later epoch than it.
        read_up_to, end = min(position.position, position.read.end), ends[position.partition]
        if end is None or end < read_up_to:
            found.append(CutLog(position.partition, position.read.epoch, end, position.position))
    return sorted(found, key=lambda cut: cut.partition)


def short_logs(held: Iterable[PartitionPosition], ends: Mapping[TopicPartition, Position]) -> list[CutLog]:
    """Return the partitions that end before these positions, whatever their epochs."""
    short = [position for position in held if position.position > ends[position.partition]]
    cuts = [CutLog(each.partition, None, ends[each.partition], each.position) for each in short]
    return sorted(cuts, key=lambda cut: cut.partition)


def starts_in_cut_logs(cuts: Iterable[CutLog], accepted: Iterable[InputGap]) -> dict[TopicPartition, Position]:
    """Return where each begins that a person has accepted; raise ConfigurationError for others."""
    every, given = list(cuts), list(accepted)
    starts = {cut.partition: cut.accepted_start(given) for cut in every}
    refused = [cut for cut in every if starts[cut.partition] is None]
    if refused:
        first, option = refused[0], ",".join(map(_as_option, every))
        more = f" (and in {len(refused) - 1} more partitions)" if len(refused) > 1 else ""
        if first.epoch is None:
            raise ConfigurationError(_short(first, more, option))
        raise ConfigurationError(_unknown(first, more, option) if first.end is None else _cut(first, more, option))
    return {partition: start for partition, start in starts.items() if start is not None}


def _as_option(cut: CutLog) -> str:
    return f"{cut.partition}@{'FROM' if cut.end is None else cut.end}-{cut.position}"


def _short(cut: CutLog, more: str, option: str) -> str:
    return (
        f"{cut.partition} should be read from offset {cut.position}, but it ends at {cut.end}{more}: records were lost "
        f"on the broker, or the offset is wrong. Correct start= of the source, if it says so; else, to read what comes "
        f"from offset {cut.end} on, with all states and all other positions as they are, say it once: "
        f"--accept-gap {option}"
    )


def _unknown(cut: CutLog, more: str, option: str) -> str:
    return (
        f"{cut.partition} was read up to offset {cut.position}, in leader epoch {cut.epoch}, and the brokers know no "
        f"such epoch{more}: a copy of their logs was put back, and other records may have the offsets before that. To "
        f"go on, with all states and all other positions as they are, find the first offset of them and say it once: "
        f"--accept-gap {option}"
    )


def _cut(cut: CutLog, more: str, option: str) -> str:
    return (
        f"{cut.partition} was read up to offset {cut.position}, and the brokers have lost what stood from offset "
        f"{cut.end} on{more}, by an unclean leader election or because a copy of their logs was put back: other "
        f"records have those offsets, or will. To read these from offset {cut.end} on, with all states and all other "
        f"positions as they are, and with what was made of those that are lost, say it once: --accept-gap {option}"
    )
