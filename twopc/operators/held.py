"""The states of one operator between batches: a bounded write-back cache in front of the store.

A state that was read or changed stays at hand, so that a key that comes again soon costs no call of the store; changed
ones are written by `write_back`, before every snapshot and whenever many have gathered.

Invariants:

- What is changed and not yet written is never dropped, so the store with what is held here is the state.
- Memory is bounded, whatever the number of keys: beyond about `WEIGHT_MAX` bytes a subtask some are let go of, most of
  them those that came last, a few those that came first. Where keys come round in a circle that is longer than what is
  held, who drops the oldest finds nothing; so what is held stays, and is renewed little by little.
- At most `UNWRITTEN_MAX` changes and those of one batch wait to be written, so that a snapshot does not wait long;
  up to `UNWRITTEN_WHILE_FROZEN_MAX` where a writer would wait for a snapshot that is being written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Protocol

from twopc.kafka.topic_partition import TopicPartition

UNWRITTEN_MAX = 8_192
UNWRITTEN_WHILE_FROZEN_MAX = 65_536
WEIGHT_MAX = 144_000_000
WEIGHT_OF_ENTRY = 130
"""About the bytes that an entry of a dict takes, with a short key and an integer."""

DROPPED_ONE_IN = 16
OLDEST_ONE_IN = 8
"""Of those that are dropped."""


class KeyedStateStore(Protocol):
    """Keyed state under a name, by input partition and key. Used by one thread."""

    def get_many(self, name: str, partition: TopicPartition, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the state of each key, None where there is none, in the order of `keys`."""

    def put_many(
        self, name: str, partition: TopicPartition, keys: Sequence[bytes], states: Sequence[bytes | None]
    ) -> None:
        """Write the state of each key; None deletes it."""

    def frozen(self) -> bool:
        """Say whether a write would wait for a snapshot that is being written."""


class HeldStates:
    """States by partition and key: bytes as the store has them, None for no state, or an int.

    `sharers` share the memory of a subtask: all its operators that hold states.
    """

    def __init__(self, name: str, store: KeyedStateStore, sharers: int = 1) -> None:
        self._weight_max = WEIGHT_MAX // sharers
        self._name = name
        self._store = store
        self._held: defaultdict[TopicPartition, dict[bytes, Any]] = defaultdict(dict)
        self._unwritten: defaultdict[TopicPartition, dict[bytes, Any]] = defaultdict(dict)
        self._weight = 0

    def fetch(self, partition: TopicPartition, keys: Iterable[bytes]) -> None:
        """Make sure that the state of each of these keys is at hand until `settle`."""
        held = self._held[partition]
        missing = list(set(keys).difference(held))
        if missing:
            states = self._store.get_many(self._name, partition, missing)
            held.update(zip(missing, states, strict=True))
            self._weight += WEIGHT_OF_ENTRY * len(missing) + sum(map(len, filter(None, states)))

    def of(self, partition: TopicPartition) -> tuple[dict[bytes, Any], dict[bytes, Any]]:
        """Return the states at hand of a partition, and those of them that the store lacks; a change goes into both."""
        return self._held[partition], self._unwritten[partition]

    def grew(self, weight: int) -> None:
        """Note by how many bytes the states at hand have grown since they were fetched."""
        self._weight += weight

    def settle(self) -> None:
        """Between batches: write where much is unwritten; let go of some where much is held."""
        unwritten = sum(map(len, self._unwritten.values()))
        most = UNWRITTEN_WHILE_FROZEN_MAX if self._store.frozen() else UNWRITTEN_MAX
        if unwritten > most or self._weight > self._weight_max:
            self.write_back()
        while self._weight > self._weight_max:
            self._drop_some()

    def _drop_some(self) -> None:
        for held in self._held.values():
            count = len(held) // DROPPED_ONE_IN + 1
            oldest = count // OLDEST_ONE_IN + 1
            keys = [*islice(held, oldest), *islice(reversed(held), count - oldest)]
            dropped = map(held.pop, keys)
            self._weight -= WEIGHT_OF_ENTRY * len(keys) + sum(len(state) for state in dropped if type(state) is bytes)

    def write_back(self) -> None:
        """Write every change to the store; what the store refuses stays unwritten."""
        for partition, unwritten in self._unwritten.items():
            # Neighbours are written together: out of order RocksDB takes half as long again.
            keys = sorted(unwritten)
            if keys:
                states = [b"%d" % state if type(state) is int else state for state in map(unwritten.__getitem__, keys)]
                self._store.put_many(self._name, partition, keys, states)
                unwritten.clear()
