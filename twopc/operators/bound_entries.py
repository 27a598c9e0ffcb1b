"""The lists and maps of a processor: each element and each entry is stored by itself, and costs what is touched.

An entry has a time to live of its own. What is asked for whole is known whole from then on (`entry_index`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from twopc.operators.bound_state import BoundState, Call, decoded, encoded
from twopc.operators.entry_index import EntryIndex
from twopc.operators.write_back_cache import WriteBackCache
from twopc.processor import ListState, MapState, State
from twopc.serde import Serde
from twopc.state.entry_keys import entries_prefix, number_key, parted


class _BoundEntries(BoundState):
    """Entries by key, at addresses behind the key."""

    def __init__(self, declared: State, cache: WriteBackCache, call: Call) -> None:
        super().__init__(declared, cache, call)
        self._index = EntryIndex(cache)

    def clear(self) -> None:
        """Forget all entries."""
        for address, _ in self._entries():
            self._change(address, None)

    def settle(self) -> None:
        super().settle()
        self._index.settle()

    def _prefix(self) -> bytes:
        return entries_prefix(self._key_in_hand())

    def _entries(self) -> list[tuple[bytes, bytes]]:
        """Return address and encoded value of each entry of the key in hand, in the order of addresses."""
        prefix = self._prefix()
        try:
            addresses = self._index.addresses(self._call.partition, prefix)
        except BaseException as error:
            self._call.broken = error
            raise
        if self._changes:
            addresses = addresses.union(self._changes)
        values = [(address, self._load(address)) for address in sorted(addresses)]
        return [(address, value) for address, value in values if value is not None]

    def _write(self, partition: int, address: bytes, old: bytes | None, new: bytes | None) -> None:
        super()._write(partition, address, old, new)
        self._index.note(partition, parted(address)[0], address, is_there=new is not None)


class BoundListState(_BoundEntries, ListState):
    """A list by key. One element more is put behind the others, which are not looked at."""

    def get(self) -> list[Any]:
        return [decoded(self.name, self.serde, value) for _, value in self._entries()]

    def add(self, value: Any) -> None:
        self.extend((value,))

    def extend(self, values: Iterable[Any]) -> None:
        self._append([_present(self.name, self.serde, value) for value in values])

    def set(self, values: Iterable[Any]) -> None:
        new = [_present(self.name, self.serde, value) for value in values]
        old = self._entries()
        # What is the same stays where it is, but for its time.
        before, behind = (0, 0) if self.ttl_ms is not None else _same_ends([value for _, value in old], new)
        middle = old[before : len(old) - behind]
        if len(new) > len(old):
            # There is no number between two elements for one more.
            middle, behind = old[before:], 0
        put = new[before : len(new) - behind]
        for (address, _), value in zip(middle, put, strict=False):
            self._change(address, value)
        for address, _ in middle[len(put) :]:
            self._change(address, None)
        self._append(put[len(middle) :])

    def _append(self, values: list[bytes]) -> None:
        prefix, numbers = self._prefix(), self._call.numbers
        assert numbers is not None
        states, _ = self.cache.of(self._call.partition)
        for value in values:
            address = prefix + number_key(numbers.take())
            # The number is new, so the store is not asked for it.
            states[address] = None
            self._change(address, value)


class BoundMapState(_BoundEntries, MapState):
    """A map by key, in the order of its keys as they are encoded."""

    def __init__(self, declared: MapState, cache: WriteBackCache, call: Call) -> None:
        super().__init__(declared, cache, call)
        self.key_serde = declared.key_serde

    def get(self, key: Any, default: Any = None) -> Any:
        value = decoded(self.name, self.serde, self._load(self._address(key)))
        return default if value is None else value

    def put(self, key: Any, value: Any) -> None:
        self._change(self._address(key), _present(self.name, self.serde, value))

    def remove(self, key: Any) -> None:
        self._change(self._address(key), None)

    def contains(self, key: Any) -> bool:
        return self._load(self._address(key)) is not None

    def keys(self) -> list[Any]:
        return [self._key_at(address) for address, _ in self._entries()]

    def items(self) -> list[tuple[Any, Any]]:
        return [(self._key_at(address), decoded(self.name, self.serde, value)) for address, value in self._entries()]

    def _address(self, key: Any) -> bytes:
        return self._prefix() + _present(self.name, self.key_serde, key)

    def _key_at(self, address: bytes) -> Any:
        return decoded(self.name, self.key_serde, parted(address)[1])


def _same_ends(old: list[bytes], new: list[bytes]) -> tuple[int, int]:
    """Return how many elements are the same at the beginning, and of the others at the end."""
    before = _same(zip(old, new, strict=False))
    return before, _same(zip(reversed(old[before:]), reversed(new[before:]), strict=False))


def _same(pairs: Iterable[tuple[bytes, bytes]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _present(name: str, serde: Serde, value: Any) -> bytes:
    """Return an element or a key as it is stored; None is none."""
    data = encoded(name, serde, value)
    if data is None:
        raise ValueError(f"None can't be in state {name!r}")
    return data
