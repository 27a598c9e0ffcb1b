"""The states of a processor, bound to the key of the call in hand: what `self.count.get()` reaches.

Invariants:

- What a call changes counts when the call has returned: before, it is seen by that call only, and one that fails has
  changed nothing.
- A store that fails is no error of a record, although a user function may be in hand: the call is `broken`.
- A call sees a state as its serde gives it back.
- Every value with a time to live has one entry among the expiries, at the same time or a little after it is absent,
  and no value is in the store for long without one. A value that is written often moves its entry seldom.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from twopc.errors import ConfigurationError
from twopc.operators.time_queue import TIMES, TimeQueue
from twopc.operators.write_back_cache import WriteBackCache
from twopc.processor import ListState, MapState, State, ValueState
from twopc.serde import Serde
from twopc.state.forms import content, joined, pairs, pieces, time_of, timed

ENTRIES_A_TTL = 32
"""Into how many steps the time of life is divided, at which values are deleted."""


class Call:
    """The key of the call in hand, and the states that the call has looked at so far."""

    def __init__(self) -> None:
        self.partition = 0
        self.key: bytes | None = None
        self.now: int | None = None
        self.expiries: TimeQueue | None = None
        self.states: list[BoundState] = []
        self.broken: BaseException | None = None

    def keep(self) -> None:
        """The function has returned: keep what it wrote."""
        for state in self.states:
            state.keep()
            state.drop()
        self.states.clear()
        self.key = None

    def drop(self) -> None:
        """The function has failed: forget what it wrote."""
        for state in self.states:
            state.drop()
        self.states.clear()
        self.key = None


class BoundState(State):
    """A declared state, where the operator runs."""

    def __init__(self, declared: State, cache: WriteBackCache, call: Call) -> None:
        self.name, self.serde, self.ttl_ms = declared.name, declared.serde, declared.ttl_ms
        self.cache = cache
        self._call = call
        self._is_loaded = self._is_changed = False
        self._stored: bytes | None = None
        self._content: bytes | None = None

    def keep(self) -> None:
        """Keep what the call has written."""
        if self._is_changed:
            call = self._call
            assert call.key is not None
            new = self._content
            if new is not None and self.ttl_ms is not None:
                new = timed(call.now, new)
            if new != self._stored:
                self._write(call.partition, call.key, self._stored, new)
                if self.ttl_ms is not None and call.expiries is not None:
                    self._move_expiry(call.expiries, call.key, self._stored, new)

    def drop(self) -> None:
        """Forget what the call has seen and written; the next looks anew."""
        self._is_loaded = self._is_changed = False

    def expire(self, partition: int, key: bytes, expiries: TimeQueue, now: int) -> None:
        """An entry of this key was due: delete the value, or see to its entry where it was written again."""
        stored = self._fetched(partition, key)
        at = self._expiry(stored)
        if at is not None and at <= now:
            self._write(partition, key, stored, None)
        elif at is not None:
            expiries.add(at, self._due(key))

    def _load(self) -> bytes | None:
        """Return the value of the key in hand, encoded."""
        if not self._is_loaded:
            call = self._call
            if call.key is None:
                self._unbound()
            self._stored = self._content = stored = self._fetched(call.partition, call.key)
            if stored is not None and self.ttl_ms is not None:
                at = time_of(stored)
                is_over = at is not None and call.now is not None and call.now >= at + self.ttl_ms
                self._content = None if is_over else content(stored)
            self._is_loaded = True
            call.states.append(self)
        return self._content

    def _change(self, content: bytes | None) -> None:
        self._load()
        self._content = content
        self._is_changed = True

    def _fetched(self, partition: int, key: bytes) -> bytes | None:
        states, _ = self.cache.of(partition)
        if key not in states:
            try:
                self.cache.fetch(partition, (key,))
            except BaseException as error:
                self._call.broken = error
                raise
        stored: bytes | None = states.get(key)
        return stored

    def _write(self, partition: int, key: bytes, old: bytes | None, new: bytes | None) -> None:
        states, dirty = self.cache.of(partition)
        states[key] = dirty[key] = new
        self.cache.grew(len(new or b"") - len(old or b""))

    def _move_expiry(self, expiries: TimeQueue, key: bytes, old: bytes | None, new: bytes | None) -> None:
        before, after = self._expiry(old), self._expiry(new)
        if before != after:
            if before is not None:
                expiries.remove(before, self._due(key))
            if after is not None:
                expiries.add(after, self._due(key))

    def _expiry(self, stored: bytes | None) -> int | None:
        """Return when the value is deleted: at the end of the step in which its life ends."""
        at = None if stored is None or self.ttl_ms is None else time_of(stored)
        if at is None or self.ttl_ms is None:
            return None
        step = self.ttl_ms // ENTRIES_A_TTL or 1
        expiry = -(-(at + self.ttl_ms) // step) * step
        return expiry if expiry in TIMES else None

    def _due(self, key: bytes) -> bytes:
        return self.name.encode() + b"\0" + key


class BoundValueState(BoundState, ValueState):
    """One value by key."""

    def get(self) -> Any:
        return decoded(self.name, self.serde, self._load())

    def set(self, value: Any) -> None:
        self._change(encoded(self.name, self.serde, value))

    def clear(self) -> None:
        self._change(None)


class BoundListState(BoundState, ListState):
    """A list by key: a value that is added is put behind the bytes of the others."""

    def get(self) -> list[Any]:
        data = self._load()
        return [] if data is None else [decoded(self.name, self.serde, each) for each in self._pieces(data)]

    def add(self, value: Any) -> None:
        self.extend((value,))

    def extend(self, values: Iterable[Any]) -> None:
        if behind := self._joined(values):
            self._change((self._load() or b"") + behind)

    def set(self, values: Iterable[Any]) -> None:
        self._change(self._joined(values) or None)

    def clear(self) -> None:
        self._change(None)

    def _joined(self, values: Iterable[Any]) -> bytes:
        return joined([_present(self.name, self.serde, value) for value in values])

    def _pieces(self, data: bytes) -> list[bytes]:
        try:
            return list(pieces(data))
        except ValueError as error:
            raise ValueError(f"the stored state {self.name!r} is no list: {error}") from error


class BoundMapState(BoundState, MapState):
    """A map by key: taken apart when a call first looks at it, and put together again when the call has returned."""

    def __init__(self, declared: MapState, cache: WriteBackCache, call: Call) -> None:
        super().__init__(declared, cache, call)
        self.key_serde = declared.key_serde
        self._entries: dict[bytes, bytes] | None = None

    def get(self, key: Any) -> Any:
        return decoded(self.name, self.serde, self._map().get(self._key(key)))

    def put(self, key: Any, value: Any) -> None:
        entries = self._map()
        entries[self._key(key)] = _present(self.name, self.serde, value)
        self._is_changed = True

    def remove(self, key: Any) -> None:
        if self._map().pop(self._key(key), None) is not None:
            self._is_changed = True

    def contains(self, key: Any) -> bool:
        return self._key(key) in self._map()

    def keys(self) -> list[Any]:
        return [decoded(self.name, self.key_serde, key) for key in self._map()]

    def items(self) -> list[tuple[Any, Any]]:
        return [
            (decoded(self.name, self.key_serde, key), decoded(self.name, self.serde, value))
            for key, value in self._map().items()
        ]

    def clear(self) -> None:
        self._map().clear()
        self._is_changed = True

    def keep(self) -> None:
        if self._is_changed and self._entries is not None:
            self._content = joined(each for entry in self._entries.items() for each in entry) or None
        super().keep()

    def drop(self) -> None:
        super().drop()
        self._entries = None

    def _map(self) -> dict[bytes, bytes]:
        data = self._load()
        if self._entries is None:
            try:
                self._entries = dict(pairs(data or b""))
            except ValueError as error:
                raise ValueError(f"the stored state {self.name!r} is no map: {error}") from error
        return self._entries

    def _key(self, key: Any) -> bytes:
        return _present(self.name, self.key_serde, key)


def bound(declared: State, cache: WriteBackCache, call: Call) -> BoundState:
    """Return what stands for a declared state where the operator runs."""
    match declared:
        case ValueState():
            return BoundValueState(declared, cache, call)
        case ListState():
            return BoundListState(declared, cache, call)
        case MapState():
            return BoundMapState(declared, cache, call)
        case _:
            raise ConfigurationError(f"state {declared.name!r} is a {type(declared).__name__}, which no operator knows")


def decoded(name: str, serde: Serde, data: bytes | None) -> Any:
    """Return a value that was stored; raise ValueError, naming the state, where the serde refuses."""
    try:
        return None if data is None else serde.deserialize(data)
    except Exception as error:
        raise ValueError(f"the stored state {name!r} can't be decoded by {serde}: {error}") from error


def _present(name: str, serde: Serde, value: Any) -> bytes:
    """Return an element or a key as it is stored; None is none."""
    data = encoded(name, serde, value)
    if data is None:
        raise ValueError(f"None can't be in state {name!r}")
    return data


def encoded(name: str, serde: Serde, value: Any) -> bytes | None:
    """Return a value as it is stored; raise ValueError, naming the state, where the serde refuses."""
    try:
        return None if value is None else serde.serialize(value)
    except Exception as error:
        raise ValueError(f"the new value of state {name!r} can't be encoded by {serde}: {error}") from error
