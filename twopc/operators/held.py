"""The states of one operator between batches: a bounded write-back cache in front of the store.

A state that was read or changed stays at hand, so that a key that comes again soon costs no call of the store; changed
ones are written by `write_back`, before every snapshot and whenever many have gathered.

Invariants:

- What is changed and not yet written is never dropped, so the store with what is held here is the state.
- Memory is bounded, whatever the number of keys: two generations of about `WEIGHT_MAX` bytes each; a state of the older
  one that is asked for moves to the newer, and the older one is dropped when the newer is full.
- At most `UNWRITTEN_MAX` changes and those of one batch wait to be written, so that a snapshot does not wait long.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from twopc.protocol.ids import TopicPartition

UNWRITTEN_MAX = 8_192
WEIGHT_MAX = 16_000_000
WEIGHT_OF_ENTRY = 200
"""About the bytes that an entry of a dict takes, with a short key."""

Address = tuple[TopicPartition, bytes]
"""Where the state of one key is: its input partition, and the key as bytes."""


class KeyedStateStore(Protocol):
    """Keyed state under a name, by input partition and key. Used by one thread."""

    def get_many(self, name: str, keys: Sequence[Address]) -> list[bytes | None]:
        """Return the state of each address, None where there is none, in the order of `keys`."""

    def put_many(self, name: str, items: Sequence[tuple[TopicPartition, bytes, bytes | None]]) -> None:
        """Write (partition, key, state) items; a state of None deletes."""


class HeldStates:
    """States by partition and key: bytes as the store has them, None for no state, or an int."""

    def __init__(self, name: str, store: KeyedStateStore) -> None:
        self._name = name
        self._store = store
        self._newer: defaultdict[TopicPartition, dict[bytes, Any]] = defaultdict(dict)
        self._older: Mapping[TopicPartition, dict[bytes, Any]] = {}
        self._unwritten: defaultdict[TopicPartition, set[bytes]] = defaultdict(set)
        self._weight = 0

    def fetch(self, runs: Iterable[tuple[TopicPartition, Sequence[bytes]]]) -> None:
        """Make sure that the state of each of these keys is at hand."""
        missing: defaultdict[TopicPartition, set[bytes]] = defaultdict(set)
        for partition, keys in runs:
            newer, older = self._newer[partition], self._older.get(partition)
            absent = set(keys).difference(newer)
            self._weight += WEIGHT_OF_ENTRY * len(absent)
            if older:
                found = {key: older[key] for key in absent if key in older}
                newer.update(found)
                absent.difference_update(found)
            if absent:
                missing[partition] |= absent
        if missing:
            self._read(missing)

    def _read(self, missing: Mapping[TopicPartition, set[bytes]]) -> None:
        # In the order of the keys, the store finds neighbours together.
        addresses = [(partition, key) for partition, keys in missing.items() for key in sorted(keys)]
        for (partition, key), state in zip(addresses, self._store.get_many(self._name, addresses), strict=True):
            self._newer[partition][key] = state
            self._weight += 0 if state is None else len(state)

    def of(self, partition: TopicPartition) -> dict[bytes, Any]:
        """Return the states at hand of a partition; who changes one says so with `changed`."""
        return self._newer[partition]

    def changed(self, partition: TopicPartition, keys: Iterable[bytes], weight: int) -> None:
        """Note that the states of these keys were changed, and take `weight` bytes more."""
        self._unwritten[partition].update(keys)
        self._weight += weight

    def settle(self) -> None:
        """Between batches: write where much is unwritten; let go of the older generation where the newer is full."""
        full = self._weight > WEIGHT_MAX
        if full or sum(map(len, self._unwritten.values())) > UNWRITTEN_MAX:
            self.write_back()
        if full:
            self._older, self._newer, self._weight = self._newer, defaultdict(dict), 0

    def write_back(self) -> None:
        """Write every change to the store; what the store refuses stays unwritten."""
        items = [
            (partition, key, _encoded(states[key]))
            for partition, keys in self._unwritten.items()
            for states in (self._newer[partition],)
            for key in sorted(keys)
        ]
        if items:
            self._store.put_many(self._name, items)
            self._unwritten.clear()


def _encoded(state: Any) -> bytes | None:
    return b"%d" % state if type(state) is int else state
