"""The states of one operator between batches: a bounded write-back cache in front of the store.

A state that was read or changed stays at hand, so that a key that comes again soon costs no call of the store; changed
ones are written by `write_back`, before every snapshot and whenever many have gathered.

Invariants:

- A dirty entry (changed, not yet written) is never dropped, so the store overlaid with the cache is the state.
- A partition of which the store had nothing, and of which nothing was dropped since, is *whole*: what is not at hand
  has no state, and the store is not asked for it.
- Memory is bounded, whatever the number of keys: beyond about `CACHE_BYTES_MAX` bytes a subtask the cache drops some,
  most of them the newest, a few the oldest. Where keys come round in a circle longer than the cache, dropping the
  oldest would miss every time; so most entries stay, and the cache is renewed little by little.
- At most `DIRTY_MAX` entries and those of one batch wait to be written, so that a snapshot does not wait long;
  up to `DIRTY_WHILE_FROZEN_MAX` where a writer would wait for a snapshot that is being written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from twopc.state.layout import StateName

DIRTY_MAX = 12_288
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


class HeldForm(Protocol):
    """In which form values are at hand: all methods take and return columns, in which None is no value."""

    def held(self, stored: list[bytes | None]) -> list[Any]:
        """Return what is at hand of values that the store has."""

    def stored(self, held: list[Any]) -> list[bytes | None]:
        """Return values that are at hand as the store has them."""

    def size_bytes(self, held: Iterable[Any]) -> int:
        """Return about the memory that they take beside `ENTRY_BYTES` each."""


class AsStored:
    """Bytes as the store has them, or an int."""

    def held(self, stored: list[bytes | None]) -> list[Any]:
        return stored

    def stored(self, held: list[Any]) -> list[bytes | None]:
        return [b"%d" % state if type(state) is int else state for state in held]

    def size_bytes(self, held: Iterable[Any]) -> int:
        return sum(len(state) for state in held if type(state) is bytes)


AS_STORED: HeldForm = AsStored()


@dataclass(slots=True)
class _Partition:
    """What is at hand of one partition number.

    `dirty` are those of the `held` that the store does not have so, `new` those of the dirty of which it has nothing.
    """

    is_whole: bool
    held: dict[bytes, Any] = field(default_factory=dict)
    dirty: dict[bytes, Any] = field(default_factory=dict)
    new: set[bytes] = field(default_factory=set)


class WriteBackCache:
    """The values of one state by partition number and key, in the form `form`; None for no state.

    `sharers` share the memory of a subtask: all its operators that hold states.
    """

    def __init__(self, state: StateName, store: KeyedStateStore, sharers: int = 1, form: HeldForm = AS_STORED) -> None:
        self._form = form
        self._size_bytes_max = CACHE_BYTES_MAX // sharers
        self._state = state
        self._store = store
        self._partitions: dict[int, _Partition] = {}
        self._size_bytes = 0
        """Of what is at hand, beside `ENTRY_BYTES` an entry."""

    def fetch(self, partition: int, keys: Iterable[bytes]) -> None:
        """Make sure that the state of each of these keys, if it has one, is at hand until `settle`."""
        opened = self._opened(partition)
        if opened.is_whole:
            return
        missing = list(set(keys).difference(opened.held))
        if missing:
            states = self._form.held(self._store.get_many(self._state, partition, missing))
            opened.held.update(zip(missing, states, strict=True))
            self._size_bytes += self._form.size_bytes(states)

    def fetch_behind(self, partition: int, prefix: bytes) -> set[bytes]:
        """Return the keys that the store has and that begin so; the state of each is at hand until `settle`."""
        held = self._opened(partition).held
        found: set[bytes] = set()
        for key, value in self._store.scan(self._state, partition, prefix):
            if not key.startswith(prefix):
                break
            found.add(key)
            if key not in held:
                states = self._form.held([value])
                held[key] = states[0]
                self._size_bytes += self._form.size_bytes(states)
        return found

    def is_whole(self, partition: int) -> bool:
        """Say whether what is not at hand of a partition has no state."""
        return self._opened(partition).is_whole

    def dirty(self) -> Iterable[tuple[int, dict[bytes, Any]]]:
        """Yield what the store lacks of each partition."""
        return ((partition, opened.dirty) for partition, opened in self._partitions.items())

    def of(self, partition: int) -> tuple[dict[bytes, Any], dict[bytes, Any]]:
        """Return the states at hand of a partition, and those of them that the store lacks; a change goes into both.

        A key that was fetched and is not at hand has no state; one that is may have None, which is none either.
        """
        opened = self._opened(partition)
        return opened.held, opened.dirty

    def begins(self, partition: int, key: bytes) -> None:
        """A state begins, which is about to be put into those of `of`: the key was fetched, and has none."""
        opened = self._partitions[partition]
        if key not in opened.dirty:
            opened.new.add(key)

    def ends(self, partition: int, key: bytes) -> None:
        """A key has no state any more; where the store has nothing of it, nothing is written."""
        opened = self._partitions[partition]
        opened.held[key] = None
        if key in opened.new:
            opened.new.discard(key)
            del opened.dirty[key]
        else:
            opened.dirty[key] = None

    def put(self, partition: int, keys: Iterable[bytes], values: Iterable[bytes | None]) -> None:
        """Replace the state of each of these keys, whatever it was, read or not; of a key the last value stands."""
        held, dirty = self.of(partition)
        new = dict(zip(keys, values, strict=True))
        before = sum(len(held[key] or b"") for key in new.keys() & held.keys())
        held.update(new)
        dirty.update(new)
        self.grew(sum(map(len, filter(None, new.values()))) - before)

    def grew(self, size_bytes: int) -> None:
        """Note by how many bytes the values at hand have grown since they were fetched."""
        self._size_bytes += size_bytes

    def settle(self) -> None:
        """Between batches: write where much is dirty; drop some where the cache is too large."""
        dirty = sum(len(partition.dirty) for partition in self._partitions.values())
        most = DIRTY_WHILE_FROZEN_MAX if self._store.frozen() else DIRTY_MAX
        if dirty > most or self._is_too_large():
            self.write_back()
        while self._is_too_large():
            self._drop_some()

    def _opened(self, partition: int) -> _Partition:
        opened = self._partitions.get(partition)
        if opened is None:
            opened = self._partitions[partition] = _Partition(is_whole=self.store_is_empty(partition))
        return opened

    def store_is_empty(self, partition: int) -> bool:
        """Say whether the store has nothing of a partition, as it has before the first write if there is no state."""
        return next(iter(self._store.scan(self._state, partition, b"")), None) is None

    def _is_too_large(self) -> bool:
        entries = sum(len(partition.held) for partition in self._partitions.values())
        return self._size_bytes + ENTRY_BYTES * entries > self._size_bytes_max

    def _drop_some(self) -> None:
        for opened in self._partitions.values():
            opened.is_whole = False
            held = opened.held
            count = len(held) // DROPPED_ONE_IN + 1
            oldest = count // OLDEST_ONE_IN + 1
            keys = [*islice(held, oldest), *islice(reversed(held), count - oldest)]
            self._size_bytes -= self._form.size_bytes(map(held.pop, keys))

    def write_back(self) -> None:
        """Write every change to the store; what the store refuses stays dirty."""
        for partition, opened in self._partitions.items():
            dirty = opened.dirty
            # Neighbours are written together: out of order RocksDB takes half as long again.
            keys = sorted(dirty)
            if keys:
                states = self._form.stored(list(map(dirty.__getitem__, keys)))
                self._store.put_many(self._state, partition, keys, states)
                dirty.clear()
                opened.new.clear()
