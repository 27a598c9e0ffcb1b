"""A state of a processor, bound to the key of the call in hand: what `self.count.get()` reaches.

It holds values at addresses, one for each key of the stream, or several.

Invariants:

- What a call changes counts when the call has returned: before, it is seen by that call only, and one that fails has
  changed nothing.
- A store that fails is no error of a record, although a user function may be in hand: the call is `broken`.
- A call sees a state as its serde gives it back.
- Every value with a time to live has one entry among the expiries, at the same time or a little after it is absent,
  and no value is in the store for long without one. A value that is written often moves its entry seldom.
"""

from __future__ import annotations

from typing import Any

from twopc.operators.element_numbers import ElementNumbers
from twopc.operators.time_queue import TIMES, TimeQueue
from twopc.operators.write_back_cache import WriteBackCache
from twopc.processor import State
from twopc.serde import Serde
from twopc.state.forms import content, time_of, timed

ENTRIES_A_TTL = 32
"""Into how many steps the time of life is divided, at which values are deleted."""


class Call:
    """The key of the call in hand, and the states that the call has written so far."""

    def __init__(self) -> None:
        self.partition = 0
        self.key: bytes | None = None
        self.now: int | None = None
        self.expiries: TimeQueue | None = None
        self.numbers: ElementNumbers | None = None
        self.states: list[BoundState] = []
        self.broken: BaseException | None = None
        self.expiries_added = 0
        """Of the record in hand, with the timers that were due by its time."""

    def keep(self) -> None:
        """The function has returned: keep what it wrote."""
        for state in self.states:
            state.keep()
        if self.numbers is not None:
            self.numbers.keep()
        self.drop()

    def drop(self) -> None:
        """The function is through: forget what it wrote and was not kept."""
        for state in self.states:
            state.drop()
        if self.numbers is not None:
            self.numbers.drop()
        self.states.clear()
        self.key = None


class BoundState(State):
    """A declared state, where the operator runs."""

    def __init__(self, declared: State, cache: WriteBackCache, call: Call) -> None:
        self.name, self.serde, self.ttl_ms = declared.name, declared.serde, declared.ttl_ms
        self.cache = cache
        self._call = call
        self._changes: dict[bytes, bytes | None] = {}
        """What the call in hand has written, by address, as it is stored."""

    def prefetch(self, partition: int, keys: list[bytes]) -> None:
        """Read what calls for these keys will look at, as far as that is known."""

    def keep(self) -> None:
        """Keep what the call has written."""
        call = self._call
        for address, new in self._changes.items():
            old = self._fetched(call.partition, address)
            if new != old:
                self._write(call.partition, address, old, new)
                if self.ttl_ms is not None and call.expiries is not None:
                    self._move_expiry(call.expiries, address, old, new)

    def drop(self) -> None:
        """Forget what the call has written."""
        self._changes.clear()

    def settle(self) -> None:
        """Between batches: bound what is at hand."""
        self.cache.settle()

    def expire(self, partition: int, address: bytes, expiries: TimeQueue, now: int) -> None:
        """The entry of this address was due: delete the value, or see to its entry where it was written again."""
        stored = self._fetched(partition, address)
        at = self._expiry(stored)
        if at is not None and at <= now:
            self._write(partition, address, stored, None)
        elif at is not None:
            expiries.add(at, self._due(address))

    def _key_in_hand(self) -> bytes:
        key = self._call.key
        if key is None:
            self._unbound()
        return key

    def _load(self, address: bytes) -> bytes | None:
        """Return the value at this address, encoded; None where it has outlived its time."""
        changed, partition = self._changes, self._call.partition
        stored = changed[address] if address in changed else self._fetched(partition, address)
        if stored is None or self.ttl_ms is None:
            return stored
        at, now = time_of(stored), self._call.now
        is_over = at is not None and now is not None and now >= at + self.ttl_ms
        return None if is_over else content(stored)

    def _change(self, address: bytes, written: bytes | None) -> None:
        if not self._changes:
            self._call.states.append(self)
        has_time = written is not None and self.ttl_ms is not None
        self._changes[address] = timed(self._call.now, written or b"") if has_time else written

    def _fetched(self, partition: int, address: bytes) -> bytes | None:
        states, _ = self.cache.of(partition)
        if address not in states:
            try:
                self.cache.fetch(partition, (address,))
            except BaseException as error:
                self._call.broken = error
                raise
        stored: bytes | None = states.get(address)
        return stored

    def _write(self, partition: int, address: bytes, old: bytes | None, new: bytes | None) -> None:
        states, dirty = self.cache.of(partition)
        states[address] = dirty[address] = new
        self.cache.grew(len(new or b"") - len(old or b""))

    def _move_expiry(self, expiries: TimeQueue, address: bytes, old: bytes | None, new: bytes | None) -> None:
        before, after = self._expiry(old), self._expiry(new)
        if before != after:
            if before is not None:
                expiries.remove(before, self._due(address))
            if after is not None:
                expiries.add(after, self._due(address))
                self._call.expiries_added += 1

    def _expiry(self, stored: bytes | None) -> int | None:
        at = None if stored is None or self.ttl_ms is None else time_of(stored)
        return None if at is None or self.ttl_ms is None else expiry_of(at, self.ttl_ms)

    def _due(self, address: bytes) -> bytes:
        return self.name.encode() + b"\0" + address


def expiry_of(at: int, ttl_ms: int) -> int | None:
    """Return when a value of this time is deleted: at the end of the step in which its life ends; None for never."""
    step = ttl_ms // ENTRIES_A_TTL or 1
    expiry = -(-(at + ttl_ms) // step) * step
    return expiry if expiry in TIMES else None


def parted_due(due: bytes) -> tuple[str, bytes]:
    """Return the state's name and the address of what is to expire."""
    name, _, address = due.partition(b"\0")
    return name.decode(), address


def decoded(name: str, serde: Serde, data: bytes | None) -> Any:
    """Return a value that was stored; raise ValueError, naming the state, where the serde refuses."""
    try:
        return None if data is None else serde.deserialize(data)
    except Exception as error:
        raise ValueError(f"the stored state {name!r} can't be decoded by {serde}: {error}") from error


def encoded(name: str, serde: Serde, value: Any) -> bytes | None:
    """Return a value as it is stored; raise ValueError, naming the state, where the serde refuses."""
    try:
        return None if value is None else serde.serialize(value)
    except Exception as error:
        raise ValueError(f"the new value of state {name!r} can't be encoded by {serde}: {error}") from error
