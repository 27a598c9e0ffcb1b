"""Which entries the keys of a list or map have, as far as that is known: what is asked for whole is read once.

Invariants:

- Of a key that is known whole the addresses here are all that there are. Of another they are those that were written
  since it is known, and the store has the rest.
- A key of which nothing is known, in a partition that is at hand whole, has no entry; until something was forgotten.
- Memory is bounded: between batches all is forgotten that the store has, where much is known.
"""

from __future__ import annotations

from collections import defaultdict

from twopc.operators.write_back_cache import WriteBackCache
from twopc.state.entry_keys import parted

KNOWN_MAX = 65_536
"""Addresses and keys, of one state."""

_Key = tuple[int, bytes]
"""The partition number, and what the addresses of the key's entries begin with."""


class EntryIndex:
    """The addresses of the entries of one state."""

    def __init__(self, cache: WriteBackCache) -> None:
        self._cache = cache
        self._written: defaultdict[_Key, set[bytes]] = defaultdict(set)
        """Of the keys that are not known whole."""
        self._whole: dict[_Key, set[bytes]] = {}
        self._size = 0
        self._has_forgotten = False

    def note(self, partition: int, prefix: bytes, address: bytes, *, is_there: bool) -> None:
        """An entry was written or deleted."""
        whole = self._known_whole((partition, prefix))
        if whole is None:
            self._written[partition, prefix].add(address)
        elif is_there:
            whole.add(address)
        else:
            whole.discard(address)
        self._size += 1

    def addresses(self, partition: int, prefix: bytes) -> set[bytes]:
        """Return the addresses of all entries of a key, which are at hand then; not to be changed."""
        whole = self._known_whole((partition, prefix))
        if whole is None:
            whole = self._cache.fetch_behind(partition, prefix)
            _, dirty = self._cache.of(partition)
            for address in self._written.pop((partition, prefix), ()):
                if address in dirty:
                    (whole.discard if dirty[address] is None else whole.add)(address)
            self._whole[partition, prefix] = whole
            self._size += 1 + len(whole)
        else:
            self._cache.fetch(partition, whole)
        return whole

    def settle(self) -> None:
        """Between batches: forget where much is known."""
        if self._size <= KNOWN_MAX:
            return
        self._written.clear()
        self._whole.clear()
        self._has_forgotten = True
        self._size = 0
        for partition, dirty in self._cache.dirty():
            for address, value in dirty.items():
                self.note(partition, parted(address)[0], address, is_there=value is not None)

    def _known_whole(self, key: _Key) -> set[bytes] | None:
        whole = self._whole.get(key)
        if whole is None and key not in self._written and not self._has_forgotten and self._cache.is_whole(key[0]):
            whole = self._whole[key] = set()
            self._size += 1
        return whole
