"""Keeps records that can only be judged with the rest of their key: 22 bytes each, and the first values of a key."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from twopc.kafka.place import Place
from twopc.kafka.topic_partition import TopicPartition
from twopc.verify.findings import shown
from twopc.verify.history import Found, Transaction
from twopc.verify.interner import Interner

SHOWN_PER_KEY = 20
SHOWN_MAX = 5_000


@dataclass(frozen=True, slots=True)
class BufferedKey:
    """The records of one key that are buffered, in the order in which the reader saw them."""

    identities: array[int] = field(default_factory=lambda: array("q"))
    offsets: array[int] = field(default_factory=lambda: array("q"))
    partitions: array[int] = field(default_factory=lambda: array("H"))
    transactions: array[int] = field(default_factory=lambda: array("i"))
    values: list[str] = field(default_factory=list)


class RecordBuffer:
    """The buffered records of each key, by the number of the key."""

    def __init__(self) -> None:
        self._keys: dict[int, BufferedKey] = {}
        self._partitions: Interner[TopicPartition] = Interner()
        self._transactions: Interner[Transaction | None] = Interner()
        self._shown = 0

    def __contains__(self, key: int) -> bool:
        return key in self._keys

    def __getitem__(self, key: int) -> BufferedKey:
        return self._keys[key]

    def add(self, key: int, found: Found, identity: int) -> None:
        buffered = self._keys.get(key)
        if buffered is None:
            buffered = self._keys[key] = BufferedKey()
        buffered.identities.append(identity)
        buffered.offsets.append(found.place.offset)
        buffered.partitions.append(self._partitions.of(found.place.partition))
        buffered.transactions.append(self._transactions.of(found.transaction))
        if len(buffered.values) < SHOWN_PER_KEY and self._shown < SHOWN_MAX:
            self._shown += 1
            buffered.values.append(shown(found.value))

    def place(self, key: int, index: int) -> Place:
        buffered = self._keys[key]
        return Place(self._partitions.names[buffered.partitions[index]], buffered.offsets[index])

    def transaction(self, key: int, index: int) -> Transaction | None:
        return self._transactions.names[self._keys[key].transactions[index]]

    def value(self, key: int, index: int) -> str:
        """The value as a person can read it; empty if it was not kept."""
        values = self._keys[key].values
        return values[index] if index < len(values) else ""
