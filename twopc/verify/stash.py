"""Found records that could not be judged when they came: 22 bytes each, and of the first of each key the value."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from twopc.protocol.ids import TopicPartition
from twopc.verify.findings import shown
from twopc.verify.history import Found, Place, Transaction
from twopc.verify.numbers import Numbers

SHOWN_PER_KEY = 20
SHOWN_MAX = 5_000


@dataclass(frozen=True, slots=True)
class Aside:
    """The records of one key that were put aside, in the order in which they were seen."""

    identities: array[int] = field(default_factory=lambda: array("q"))
    offsets: array[int] = field(default_factory=lambda: array("q"))
    partitions: array[int] = field(default_factory=lambda: array("H"))
    transactions: array[int] = field(default_factory=lambda: array("i"))
    values: list[str] = field(default_factory=list)


class Stash:
    """What was put aside, by number of the key."""

    def __init__(self) -> None:
        self._asides: dict[int, Aside] = {}
        self._partitions: Numbers[TopicPartition] = Numbers()
        self._transactions: Numbers[Transaction | None] = Numbers()
        self._shown = 0

    def __contains__(self, key: int) -> bool:
        return key in self._asides

    def __getitem__(self, key: int) -> Aside:
        return self._asides[key]

    def add(self, key: int, found: Found, identity: int) -> None:
        aside = self._asides.get(key)
        if aside is None:
            aside = self._asides[key] = Aside()
        aside.identities.append(identity)
        aside.offsets.append(found.place.offset)
        aside.partitions.append(self._partitions.of(found.place.partition))
        aside.transactions.append(self._transactions.of(found.transaction))
        if len(aside.values) < SHOWN_PER_KEY and self._shown < SHOWN_MAX:
            self._shown += 1
            aside.values.append(shown(found.value))

    def place(self, key: int, index: int) -> Place:
        aside = self._asides[key]
        return Place(self._partitions.names[aside.partitions[index]], aside.offsets[index])

    def transaction(self, key: int, index: int) -> Transaction | None:
        return self._transactions.names[self._asides[key].transactions[index]]

    def value(self, key: int, index: int) -> str:
        """The value as a person can read it; empty if it was not kept."""
        values = self._asides[key].values
        return values[index] if index < len(values) else ""
