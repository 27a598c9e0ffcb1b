"""The transactions of an output partition's records, and their outcomes, by the partition's own log.

A producer has one transaction at a time, so what it wrote since its last marker is one transaction. Which transactions
of other partitions are of the same one, the log doesn't say.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from twopc.kafka.input.batches import LogBatch, Marker
from twopc.kafka.topic_partition import TopicPartition
from twopc.verify.compaction_gaps import CompactionGaps
from twopc.verify.history import Outcome, Transaction

_OUTCOMES = {Marker.COMMIT: Outcome.COMMITTED, Marker.ABORT: Outcome.ABORTED}
_NONE = -1


class Transactions:
    """The transactions of one partition; a few bytes for each batch that follows one of another transaction.

    `holes` counts the offsets from `first` on at which nothing stands any more.
    """

    def __init__(self, partition: TopicPartition, batches: Iterable[LogBatch], first: int = 0) -> None:
        self._partition = partition
        self.holes = CompactionGaps(first)
        self._transactions: list[Transaction] = []
        self._starts = array("q")
        self._owners = array("i")
        self._open: dict[int, int] = {}
        self._firsts = array("q")
        self._lasts = array("q")
        self._ended_ms = array("q")
        self._known_from_ms: float = math.inf
        for batch in batches:
            self._take(batch)

    def at(self, offset: int) -> Transaction | None:
        """Return the transaction of the record at this offset; None for one that was written outside of any."""
        run = bisect_right(self._starts, offset) - 1
        owner = self._owners[run] if run >= 0 else _NONE
        return None if owner == _NONE else self._transactions[owner]

    def end_of(self, producer_id: int, producer_epoch: int, start_ms: int) -> int | None:
        """Return the last offset of the committed transaction that a producer began then; None if that can't be told.

        It is the first of the producer's to end after it began, by the brokers' clocks: they may differ by less than a
        producer leaves between two transactions. What the log that was read doesn't reach back to can't be told.
        """
        if self._known_from_ms > start_ms:
            return None
        for transaction, last, ended_ms in zip(self._transactions, self._lasts, self._ended_ms, strict=True):
            if (transaction.producer_id, transaction.producer_epoch) == (
                producer_id,
                producer_epoch,
            ) and ended_ms >= start_ms:
                return last if transaction.outcome is Outcome.COMMITTED else None
        return None

    def reaches(self, time_ms: int) -> bool:
        """Whether all that ended since then, by the brokers' clocks, is in the part of the log that was read."""
        return self._known_from_ms <= time_ms

    def ended_before(self, time_ms: int) -> frozenset[int]:
        """Return the numbers of the committed transactions that had ended by then."""
        return frozenset(
            transaction.number
            for transaction, ended_ms in zip(self._transactions, self._ended_ms, strict=True)
            if transaction.outcome is Outcome.COMMITTED and ended_ms < time_ms
        )

    def first_after(self, producer_id: int, producer_epoch: int, start_ms: int, *, wrote: bool) -> int | None:
        """Return the first offset of what a producer wrote after the transaction that it began then.

        `wrote` says whether that one has records here. A producer that was initialised again has a later epoch.
        """
        own = wrote
        for transaction, first, ended_ms in zip(self._transactions, self._firsts, self._ended_ms, strict=True):
            if transaction.producer_id != producer_id or transaction.producer_epoch < producer_epoch:
                continue
            if transaction.producer_epoch > producer_epoch:
                return first
            if transaction.outcome is Outcome.OPEN or ended_ms >= start_ms:
                if not own:
                    return first
                own = False
        return None

    def outcomes(self) -> Counter[Outcome]:
        """The number of transactions by outcome."""
        return Counter(transaction.outcome for transaction in self._transactions)

    def _take(self, batch: LogBatch) -> None:
        self.holes.note(batch)
        if batch.first == 0:
            self._known_from_ms = 0
        if batch.marker is not None:
            self._known_from_ms = min(self._known_from_ms, batch.time_ms)
            owner = self._open.pop(batch.producer_id, None)
            if owner is not None and batch.marker in _OUTCOMES:
                self._transactions[owner] = replace(self._transactions[owner], outcome=_OUTCOMES[batch.marker])
                self._ended_ms[owner] = batch.time_ms
            return
        owner = self._owner(batch) if batch.transactional else _NONE
        if owner != _NONE:
            self._lasts[owner] = batch.last
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
            self._firsts.append(batch.first)
            self._lasts.append(batch.last)
            self._ended_ms.append(-1)
        return owner
