"""State by key, as operators use it, on a backend: by operator, partition number, state name and key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from twopc.state.backend import Family, StateBackend
from twopc.state.layout import StateName, after_prefix, operator_key, parse_keyed_key, state_prefix


class KeyedState:
    """Values by state, partition number and key, in columns: the store that operators ask."""

    def __init__(self, backend: StateBackend) -> None:
        self._backend = backend
        self._prefixes: dict[tuple[StateName, int], bytes] = {}

    def get_many(self, state: StateName, partition: int, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none, in order."""
        prefix = self._prefix(state, partition)
        return self._backend.get_many(Family.KEYED, [prefix + key for key in keys])

    def put_many(self, state: StateName, partition: int, keys: Sequence[bytes], values: Sequence[bytes | None]) -> None:
        """Write the value of each key, all or none; a value of None deletes the key."""
        prefix = self._prefix(state, partition)
        self._backend.put_many(Family.KEYED, zip(map(prefix.__add__, keys), values, strict=True))

    def scan(self, state: StateName, partition: int, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values from the key `start` on, in the order of keys."""
        prefix = self._prefix(state, partition)
        for key, value in self._backend.scan(Family.KEYED, prefix, start):
            yield key[len(prefix) :], value

    def frozen(self) -> bool:
        """Say whether a write would wait for a snapshot that is being written."""
        return self._backend.frozen()

    def _prefix(self, state: StateName, partition: int) -> bytes:
        known = self._prefixes.get((state, partition))
        if known is None:
            known = self._prefixes[state, partition] = state_prefix(state, partition)
        return known


def keyed_states(backend: StateBackend) -> Iterator[tuple[StateName, int]]:
    """Yield each state and partition number that has a key, in the order of keys, a seek for each."""
    start: bytes | None = b""
    while start is not None and (item := backend.first_from(Family.KEYED, start)) is not None:
        state, partition, _ = parse_keyed_key(item[0])
        yield state, partition
        start = after_prefix(state_prefix(state, partition))


class OperatorState:
    """One value per operator and subtask, restored to the subtask of the same index."""

    def __init__(self, backend: StateBackend) -> None:
        self._backend = backend

    def get(self, name: str) -> bytes | None:
        """Return the stored value of this name, None if there is none."""
        return self._backend.get_many(Family.OPERATOR, [operator_key(name)])[0]

    def put(self, name: str, value: bytes) -> None:
        """Store the value of this name."""
        self._backend.put_many(Family.OPERATOR, [(operator_key(name), value)])
