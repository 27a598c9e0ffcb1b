"""Where in an output a checkpoint stood, as far as its own transactions tell.

A checkpoint's committables are what its subtasks had written last, and a subtask begins its next transaction only after
it has flushed the one before. So of all that a subtask wrote to a partition, the last record of those transactions is
the last before the checkpoint. Where that can't be told (nothing was written there, a transaction was lost, its marker
is gone) it is left open.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum

from twopc.errors import CheckpointCorrupted
from twopc.kafka.committable import PreparedTransaction
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import SubtaskIndex, TopicPartition
from twopc.verify.attribution import Owners
from twopc.verify.history import Place


class Side(Enum):
    """On which side of the checkpoint a record was written."""

    BEFORE = "before"
    AFTER = "after"
    OPEN = "can't be told"


@dataclass(frozen=True, slots=True)
class Bounds:
    """`readers` is who read each input partition; `reached` is the last offset that a subtask wrote before.

    `last` is the last that any of them wrote to a partition before.
    """

    readers: Mapping[TopicPartition, SubtaskIndex] = field(default_factory=dict)
    reached: Mapping[tuple[SubtaskIndex, TopicPartition], int] = field(default_factory=dict)
    last: Mapping[TopicPartition, int] = field(init=False)

    def __post_init__(self) -> None:
        last: dict[TopicPartition, int] = {}
        for (_, partition), offset in self.reached.items():
            last[partition] = max(offset, last.get(partition, offset))
        object.__setattr__(self, "last", last)

    def side(self, sources: Collection[TopicPartition], place: Place) -> Side:
        """Say it of a record of a key that is made of these input partitions since the checkpoint.

        The key may have come from others before: so it is after only what all subtasks had written.
        """
        partition, offset = place
        own = [self.reached.get((self.readers.get(each, SubtaskIndex(-1)), partition)) for each in sources]
        known = [each for each in own if each is not None]
        if len(known) < len(own) or not known:
            return Side.OPEN
        if offset <= min(known):
            return Side.BEFORE
        return Side.AFTER if offset > self.last[partition] else Side.OPEN

    def is_after(self, source: TopicPartition, place: Place) -> bool:
        """Whether it was surely written after the checkpoint, if it is made of this input partition."""
        return self.side((source,), place) is Side.AFTER


def bounds_of(metadata: CheckpointMetadata, whose: Owners) -> Bounds:
    """Find the checkpoint's transactions in the log."""
    reached: dict[tuple[SubtaskIndex, TopicPartition], int] = {}
    doubtful: set[TopicPartition] = set()
    for item in metadata.committables:
        try:
            prepared = PreparedTransaction.from_committable(item)
        except CheckpointCorrupted:
            return Bounds()
        for partition in set(prepared.partitions) & whose.keys():
            end = whose[partition].end_of(prepared.producer_id, prepared.producer_epoch, prepared.start_ms)
            if end is None:
                doubtful.add(partition)
            else:
                reached[item.subtask, partition] = max(end, reached.get((item.subtask, partition), end))
    readers = {each.partition: snapshot.subtask for snapshot in metadata.snapshots for each in snapshot.positions}
    return Bounds(readers, {place: end for place, end in reached.items() if place[1] not in doubtful})
