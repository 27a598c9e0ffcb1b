"""One named state of a checkpoint: found by key, by prefix, or whole, over all partition numbers."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from twopc.errors import ConfigurationError
from twopc.inspect.entry import StateEntry
from twopc.inspect.snapshots import OpenSnapshot, OpenSnapshots
from twopc.protocol.ids import SubtaskIndex
from twopc.state.backend import Family
from twopc.state.key_form import key_bytes
from twopc.state.keyed import keyed_states
from twopc.state.layout import StateName
from twopc.state.serdes import KEY as SERDES_KEY

Address = tuple[int, bytes, int]
"""An entry's place, whichever subtask stored it, in the order of entries. Only operator state belongs to a subtask."""

_KEYED, _OPERATOR = 0, 1


@dataclass(frozen=True, slots=True)
class StateSize:
    """The size of a state: its keys, and the bytes of its keys and values."""

    keys: int
    size_bytes: int


class State:
    """The state under one name in a checkpoint, in the order in which it is stored: by partition, then by key."""

    def __init__(self, name: StateName, snapshots: OpenSnapshots, owners: dict[int, SubtaskIndex]) -> None:
        self.name = name
        self._snapshots = snapshots
        self._owners = owners

    def get(self, key: Any, partition: int | None = None) -> Any:
        """Return the value of one key, None if there is none; the key is given as the job has it: text, bytes, ...

        Raises ConfigurationError if it has a state under more than one partition number and none is named.
        """
        found = self.find(key, partition)
        if len(found) > 1:
            places = ", ".join(str(entry.partition) for entry in found)
            raise ConfigurationError(
                f"key {key!r} has a state {str(self.name)!r} in each of the partitions {places}: name the partition"
            )
        return found[0].value if found else None

    def find(self, key: Any, partition: int | None = None) -> list[StateEntry]:
        """Return the entry of this key under each partition number that has one, or under the one that is named."""
        if partition is not None and partition not in self._owners:
            known = ", ".join(map(str, sorted(self._owners))) or "none"
            raise ConfigurationError(f"the checkpoint has no partition {partition}; it has {known}")
        wanted = key_bytes(key)
        found = []
        for owner in sorted(self._owners) if partition is None else [partition]:
            snapshot = self._snapshots.of(self._owners[owner])
            _, key, raw = next(snapshot.keyed(self.name, owner, wanted), (b"", None, b""))
            if key == wanted:
                found.append(_entry(snapshot, self.name, owner, wanted, raw))
        return found

    def items(self) -> Iterator[StateEntry]:
        """Yield every entry; what operators keep for themselves comes after state by key."""
        return (entry for _, entry in addressed_entries(self._snapshots, self.name))

    def scan(self, prefix: Any) -> Iterator[StateEntry]:
        """Yield the entries whose key, in the form in which it is stored, begins so."""
        return (entry for _, entry in _keyed(self._snapshots, self.name, key_bytes(prefix)))

    def size(self) -> StateSize:
        """Count keys and bytes; reads all of it."""
        keys = size_bytes = 0
        for entry in self.items():
            keys += 1
            size_bytes += len(entry.stored_key) + len(entry.raw)
        return StateSize(keys, size_bytes)


def addressed_entries(snapshots: OpenSnapshots, name: StateName | None = None) -> Iterator[tuple[Address, StateEntry]]:
    """Yield each entry with its address, of one state or of all: in the order of addresses, over all subtasks."""
    yield from _keyed(snapshots, name, b"")
    own = heapq.merge(*map(_own, snapshots.all()), key=lambda item: item[0])
    yield from (item for item in own if name in (None, item[1].state))


def names_of(snapshot: OpenSnapshot) -> set[StateName]:
    """The names of a subtask's states: those that have a key, and those that the job declares."""
    keyed = {state for state, _ in keyed_states(snapshot.backend)}
    return keyed | {entry.state for _, entry in _own(snapshot)} | set(snapshot.declared)


def _keyed(snapshots: OpenSnapshots, name: StateName | None, prefix: bytes) -> Iterator[tuple[Address, StateEntry]]:
    return heapq.merge(*(_keyed_of(snapshot, name, prefix) for snapshot in snapshots.all()), key=lambda item: item[0])


def _keyed_of(snapshot: OpenSnapshot, name: StateName | None, prefix: bytes) -> Iterator[tuple[Address, StateEntry]]:
    for state, partition in keyed_states(snapshot.backend):
        if name not in (None, state):
            continue
        for stored, key, raw in snapshot.keyed(state, partition, prefix):
            yield (_KEYED, stored, 0), _entry(snapshot, state, partition, key, raw)


def _own(snapshot: OpenSnapshot) -> Iterator[tuple[Address, StateEntry]]:
    """Yield what each operator keeps for itself in this subtask."""
    for key, raw in snapshot.backend.scan(Family.OPERATOR):
        if key != SERDES_KEY:
            state = StateName.parse(key.decode(errors="replace"))
            yield (_OPERATOR, key, snapshot.subtask), _entry(snapshot, state, None, b"", raw)


def _entry(snapshot: OpenSnapshot, state: StateName, partition: int | None, key: bytes, raw: bytes) -> StateEntry:
    return StateEntry(state, snapshot.subtask, partition, key, raw, snapshot.serde(state))
