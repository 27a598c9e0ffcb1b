"""The states of one operator between batches: a bounded write-back cache in front of the store.

A state that was read or changed stays at hand, so that a key that comes again soon costs no call of the store; changed
ones are written by `write_back`, before every snapshot and whenever many have gathered.

Invariants:

- A dirty entry (changed, not yet written) is never dropped, so the store overlaid with the cache is the state.
- Memory is bounded, whatever the number of keys: beyond about `CACHE_BYTES_MAX` bytes a subtask the cache drops some,
  most of them the newest, a few the oldest. Where keys come round in a circle longer than the cache, dropping the
  oldest would miss every time; so most entries stay, and the cache is renewed little by little.
- At most `DIRTY_MAX` entries and those of one batch wait to be written, so that a snapshot does not wait long;
  up to `DIRTY_WHILE_FROZEN_MAX` where a writer would wait for a snapshot that is being written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Protocol

from twopc.state.layout import StateName

DIRTY_MAX = 8_192
DIRTY_WHILE_FROZEN_MAX = 65_536
CACHE_BYTES_MAX = 144_000_000
ENTRY_BYTES = 130
"""About the bytes that an entry of a dict takes, with a short key and an integer."""

DROPPED_ONE_IN = 16
OLDEST_ONE_IN = 8
"""Of those that are dropped."""


class KeyedStateStore(Protocol):
    """Keyed state by state, partition number and key. Used by one thread."""

    def get_many(self, state: StateName, partition: int, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the state of each key, None where there is none, in the order of `keys`."""

    def put_many(self, state: StateName, partition: int, keys: Sequence[bytes], values: Sequence[bytes | None]) -> None:
        """Write the value of each key; None deletes it."""

    def scan(self, state: StateName, partition: int, start: bytes) -> Iterable[tuple[bytes, bytes]]:
        """Yield keys and values from the key `start` on, in the order of keys; nothing is written meanwhile."""

    def frozen(self) -> bool:
        """Say whether a write would wait for a snapshot that is being written."""


class WriteBackCache:
    """The values of one state by partition number and key: bytes as the store has them, None for no state, or an int.

    `sharers` share the memory of a subtask: all its operators that hold states.
    """

    def __init__(self, state: StateName, store: KeyedStateStore, sharers: int = 1) -> None:
        self._size_bytes_max = CACHE_BYTES_MAX // sharers
        self._state = state
        self._store = store
        self._cached: defaultdict[int, dict[bytes, Any]] = defaultdict(dict)
        self._dirty: defaultdict[int, dict[bytes, Any]] = defaultdict(dict)
        self._size_bytes = 0

    def fetch(self, partition: int, keys: Iterable[bytes]) -> None:
        """Make sure that the state of each of these keys is at hand until `settle`."""
        held = self._cached[partition]
        missing = list(set(keys).difference(held))
        if missing:
            states = self._store.get_many(self._state, partition, missing)
            held.update(zip(missing, states, strict=True))
            self._size_bytes += ENTRY_BYTES * len(missing) + sum(map(len, filter(None, states)))

    def of(self, partition: int) -> tuple[dict[bytes, Any], dict[bytes, Any]]:
        """Return the states at hand of a partition, and those of them that the store lacks; a change goes into both."""
        return self._cached[partition], self._dirty[partition]

    def grew(self, size_bytes: int) -> None:
        """Note by how many bytes the states at hand have grown since they were fetched."""
        self._size_bytes += size_bytes

    def settle(self) -> None:
        """Between batches: write where much is dirty; drop some where the cache is too large."""
        dirty = sum(map(len, self._dirty.values()))
        most = DIRTY_WHILE_FROZEN_MAX if self._store.frozen() else DIRTY_MAX
        if dirty > most or self._size_bytes > self._size_bytes_max:
            self.write_back()
        while self._size_bytes > self._size_bytes_max:
            self._drop_some()

    def _drop_some(self) -> None:
        for held in self._cached.values():
            count = len(held) // DROPPED_ONE_IN + 1
            oldest = count // OLDEST_ONE_IN + 1
            keys = [*islice(held, oldest), *islice(reversed(held), count - oldest)]
            dropped = map(held.pop, keys)
            self._size_bytes -= ENTRY_BYTES * len(keys) + sum(len(state) for state in dropped if type(state) is bytes)

    def write_back(self) -> None:
        """Write every change to the store; what the store refuses stays dirty."""
        for partition, dirty in self._dirty.items():
            # Neighbours are written together: out of order RocksDB takes half as long again.
            keys = sorted(dirty)
            if keys:
                states = [b"%d" % state if type(state) is int else state for state in map(dirty.__getitem__, keys)]
                self._store.put_many(self._state, partition, keys, states)
                dirty.clear()
