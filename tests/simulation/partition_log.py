"""The log of one partition: records and transaction markers, and what its leader knows of each producer. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.transaction_coordinator import Producer
from tests.simulation.transaction_tables import Code


@dataclass(frozen=True, slots=True)
class Entry:
    """A record, or the marker that ends a producer's transaction."""

    producer_id: int
    value: str = ""
    commit: bool | None = None


@dataclass(slots=True)
class ProducerState:
    """The leader's memory of a producer: its last epoch and sequence number, and where its open transaction begins."""

    producer_epoch: int
    sequence: int = -1
    first_offset: int = -1


@dataclass(slots=True)
class First:
    """The first request of a transaction; `adds`: it was to add the partition."""

    adds: bool
    producer_epoch: int
    sequence: int


class PartitionLog:
    """Offsets are indexes into `entries`."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.begin = 0
        """The first offset that was not deleted."""
        self.producers: dict[int, ProducerState] = {}
        self._first: dict[int, First] = {}

    @property
    def high_watermark(self) -> int:
        return len(self.entries)

    @property
    def last_stable_offset(self) -> int:
        """Where a read_committed reader stops: at the first record of the oldest open transaction."""
        return min(
            (state.first_offset for state in self.producers.values() if state.first_offset >= 0),
            default=len(self.entries),
        )

    def is_open(self, producer: Producer) -> bool:
        """Whether the producer has written to the partition in a transaction that is still open."""
        state = self.producers.get(producer[0])
        return state is not None and state.first_offset >= 0 and state.producer_epoch == producer[1]

    def is_stale(self, producer: Producer) -> bool:
        """Whether a later producer epoch, or the marker of one, has been seen here."""
        state = self.producers.get(producer[0])
        return state is not None and producer[1] < state.producer_epoch

    def await_first(self, producer: Producer, sequence: int, *, adds: bool) -> None:
        """Note, before the transaction coordinator is asked, what a transaction of the producer may begin with."""
        first = self._first.setdefault(producer[0], First(adds, producer[1], sequence))
        if (producer[1], -sequence) > (first.producer_epoch, -first.sequence):
            first.producer_epoch, first.sequence = producer[1], sequence

    def append(self, producer: Producer, value: str, sequence: int | None = None) -> Code:
        """Append a record of a transaction; without a sequence number, as the next one.

        What was appended under a sequence number before is not appended again.
        """
        state = self.producers.get(producer[0])
        code = _in_sequence(state, producer, sequence, self._first.get(producer[0]))
        if code is not Code.NONE:
            return code
        if state is None:
            state = self.producers[producer[0]] = ProducerState(producer[1])
        self._first.pop(producer[0], None)
        if sequence is not None:
            if state.producer_epoch == producer[1] and sequence <= state.sequence:
                return code
            state.sequence = sequence
        state.producer_epoch = producer[1]
        if state.first_offset < 0:
            state.first_offset = len(self.entries)
        self.entries.append(Entry(producer[0], value))
        return code

    def mark(self, producer: Producer, *, commit: bool) -> None:
        """End the producer's transaction here."""
        state = self.producers.setdefault(producer[0], ProducerState(producer[1]))
        if state.producer_epoch != producer[1]:
            state.producer_epoch, state.sequence = producer[1], -1
        state.first_offset = -1
        self._first.pop(producer[0], None)
        self.entries.append(Entry(producer[0], commit=commit))

    def read(self, *, committed: bool) -> list[str]:
        """What a reader sees: all, or up to the last stable offset without what was aborted."""
        if not committed:
            return [entry.value for entry in self.entries if entry.commit is None]
        return [value for _, value in self.committed()]

    def committed(self, begin: int = 0) -> list[tuple[int, str]]:
        """Return the committed records from this offset on up to the last stable offset, with theirs."""
        visible: list[tuple[int, str]] = []
        outcome: dict[int, bool | None] = {}
        for offset in range(len(self.entries) - 1, begin - 1, -1):
            entry = self.entries[offset]
            if entry.commit is not None:
                outcome[entry.producer_id] = entry.commit
            elif outcome.get(entry.producer_id):
                visible.append((offset, entry.value))
            elif entry.producer_id not in outcome:
                # Its transaction is open: nothing from here on is stable.
                visible.clear()
        visible.reverse()
        return visible


def _in_sequence(state: ProducerState | None, producer: Producer, sequence: int | None, first: First | None) -> Code:
    if state is not None and producer[1] < state.producer_epoch:
        return Code.INVALID_PRODUCER_EPOCH
    if sequence is None:
        return Code.NONE
    empty = state is None or state.sequence < 0
    if first is not None and sequence > (0 if empty and first.adds else first.sequence):
        return Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    if state is None:
        return Code.NONE
    due = 0 if producer[1] > state.producer_epoch else state.sequence + 1
    return Code.NONE if sequence <= due else Code.OUT_OF_ORDER_SEQUENCE_NUMBER
