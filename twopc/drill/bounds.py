"""The bounds of a checkpoint in an output, as far as its own transactions tell.

A checkpoint's committables are what its subtasks had written last, and a subtask begins its next transaction only after
it has flushed the one before. So of all that a subtask wrote to a partition, the last record of those transactions is
the last before the checkpoint. Where nothing was written there, two things are known besides: what had ended before one
of those transactions began is from before; and a producer of one of them writes again only when the checkpoint is
complete, so that all from there on is from after. Where neither tells it is left open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from twopc.errors import CheckpointCorrupted
from twopc.kafka.place import Place
from twopc.kafka.positions.partition_position import offsets_of
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.protocol.facts import CheckpointMetadata, Committable
from twopc.protocol.ids import SubtaskIndex
from twopc.verify.history import Found
from twopc.verify.transaction_lookup import TransactionLookup
from twopc.verify.transactions import Transactions


class Side(Enum):
    """On which side of the checkpoint a record was written."""

    BEFORE = "before"
    AFTER = "after"
    OPEN = "can't be told"


@dataclass(frozen=True, slots=True)
class Bounds:
    """`readers` is who read each input partition; `reached` is the last offset that a subtask wrote before.

    `ended` are the transactions of a partition, by number, that had ended before; `later` is the offset from which on
    all was written after. `last` is the last that any of them wrote to a partition before.
    """

    readers: Mapping[TopicPartition, SubtaskIndex] = field(default_factory=dict)
    reached: Mapping[tuple[SubtaskIndex, TopicPartition], int] = field(default_factory=dict)
    ended: Mapping[TopicPartition, frozenset[int]] = field(default_factory=dict)
    later: Mapping[TopicPartition, int] = field(default_factory=dict)
    last: Mapping[TopicPartition, int] = field(init=False)

    def __post_init__(self) -> None:
        last: dict[TopicPartition, int] = {}
        for (_, partition), offset in self.reached.items():
            last[partition] = max(offset, last.get(partition, offset))
        object.__setattr__(self, "last", last)

    def side(self, sources: Collection[TopicPartition], found: Found) -> Side:
        """Say it of a record of a key that is made of these input partitions since the checkpoint."""
        if found.transaction is not None and found.transaction.number in self.ended.get(found.place.partition, ()):
            return Side.BEFORE
        return self._side_of_place(sources, found.place)

    def is_after(self, source: TopicPartition, place: Place) -> bool:
        """Whether what stands there was surely written after the checkpoint, if it is made of this input partition."""
        return self._side_of_place((source,), place) is Side.AFTER

    def _side_of_place(self, sources: Collection[TopicPartition], place: Place) -> Side:
        """The key may have come from others before: so it is after only what all subtasks had written."""
        partition, offset = place
        if partition in self.later and offset >= self.later[partition]:
            return Side.AFTER
        own = [self.reached.get((self.readers.get(source, SubtaskIndex(-1)), partition)) for source in sources]
        known = [each for each in own if each is not None]
        if len(known) < len(own) or not known:
            return Side.OPEN
        if offset <= min(known):
            return Side.BEFORE
        return Side.AFTER if offset > self.last[partition] else Side.OPEN


def bounds_of(metadata: CheckpointMetadata, held: Sequence[PreparedTransaction], lookup: TransactionLookup) -> Bounds:
    """Find the checkpoint's transactions in the log; `held` are those of the cluster that the log is of."""
    reached: dict[tuple[SubtaskIndex, TopicPartition], int] = {}
    doubtful: set[TopicPartition] = set()
    for prepared in held:
        for partition in set(prepared.partitions) & lookup.keys():
            end = lookup[partition].end_of(prepared.producer_id, prepared.producer_epoch, prepared.start_ms)
            if end is None:
                doubtful.add(partition)
            else:
                reached[prepared.subtask, partition] = max(end, reached.get((prepared.subtask, partition), end))
    began_ms = max((transaction.start_ms for transaction in held), default=0)
    last = [transaction for transaction in held if transaction.checkpoint_id == metadata.checkpoint_id]
    later = {
        partition: min(
            (first for each in last if (first := _first_after(each, partition, own)) is not None), default=None
        )
        for partition, own in lookup.items()
        # What was lost with a transaction is written again later, and is from before all the same.
        if partition not in doubtful
    }
    return Bounds(
        readers={each: snapshot.subtask for snapshot in metadata.snapshots for each in offsets_of(snapshot.positions)},
        reached={place: end for place, end in reached.items() if place[1] not in doubtful},
        ended={partition: each.ended_before(began_ms) for partition, each in lookup.items()},
        later={partition: first for partition, first in later.items() if first is not None},
    )


def _first_after(prepared: PreparedTransaction, partition: TopicPartition, log: Transactions) -> int | None:
    return log.first_after(
        prepared.producer_id, prepared.producer_epoch, prepared.start_ms, wrote=partition in prepared.partitions
    )


def prepared_of(committables: Iterable[Committable]) -> list[PreparedTransaction]:
    """Return a checkpoint's transactions; none, if one of them can't be read."""
    try:
        return [PreparedTransaction.from_committable(item) for item in committables]
    except CheckpointCorrupted:
        return []
