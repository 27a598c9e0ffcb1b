"""Which transaction each record of an output partition belongs to, and what became of it, by the partition's own log.

A producer has one transaction at a time, so what it wrote since its last marker is one transaction. Which transactions
of other partitions are of the same one, the log doesn't say.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from twopc.errors import Unavailable
from twopc.kafka.batches import LogBatch, Marker, log_batches
from twopc.protocol.ids import Position, TopicPartition
from twopc.verify.history import Outcome, Transaction

_OUTCOMES = {Marker.COMMIT: Outcome.COMMITTED, Marker.ABORT: Outcome.ABORTED}
_NONE = -1


class Transactions:
    """The transactions of one partition; a few bytes for each batch that follows one of another transaction."""

    def __init__(self, partition: TopicPartition, batches: Iterable[LogBatch]) -> None:
        self._partition = partition
        self._transactions: list[Transaction] = []
        self._starts = array("q")
        self._owners = array("i")
        self._open: dict[int, int] = {}
        for batch in batches:
            self._take(batch)

    def at(self, offset: int) -> Transaction | None:
        """Return the transaction of the record at this offset; None for one that was written outside of any."""
        run = bisect_right(self._starts, offset) - 1
        owner = self._owners[run] if run >= 0 else _NONE
        return None if owner == _NONE else self._transactions[owner]

    def outcomes(self) -> Counter[Outcome]:
        """How many transactions ended in which way."""
        return Counter(each.outcome for each in self._transactions)

    def _take(self, batch: LogBatch) -> None:
        if batch.marker is not None:
            owner = self._open.pop(batch.producer_id, None)
            if owner is not None and batch.marker in _OUTCOMES:
                self._transactions[owner] = replace(self._transactions[owner], outcome=_OUTCOMES[batch.marker])
            return
        owner = self._owner(batch) if batch.transactional else _NONE
        if not self._owners or self._owners[-1] != owner:
            self._starts.append(batch.first)
            self._owners.append(owner)

    def _owner(self, batch: LogBatch) -> int:
        owner = self._open.get(batch.producer_id)
        if owner is None:
            owner = self._open[batch.producer_id] = len(self._transactions)
            number = len(self._transactions)
            self._transactions.append(
                Transaction(batch.producer_id, batch.producer_epoch, self._partition, number, Outcome.OPEN)
            )
        return owner


def scan(fetch: Callable[[Position], bytes], first: Position, end: Position) -> Iterator[LogBatch]:
    """Yield the batches of a log between two offsets; raise Unavailable if it ends before."""
    at = first
    while at < end:
        before = at
        for batch in log_batches(fetch(at)):
            if at <= batch.last and batch.first < end:
                yield batch
            at = Position(max(at, batch.last + 1))
        if at == before:
            raise Unavailable(f"the log could not be read on from offset {at}, short of its end at {end}")
