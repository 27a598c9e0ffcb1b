"""Keyed state in a dict: the store of operators where nothing has to outlive the process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from twopc.state.layout import StateName

Address = tuple[StateName, int, bytes]
"""State, partition number, key."""


class DictStore:
    """Notes what it is asked; refuses to write, or says that a write would wait, as long as it is told to."""

    def __init__(self, states: Mapping[Address, bytes] | None = None) -> None:
        self.states = dict(states or {})
        self.reads: list[Address] = []
        self.writes: list[tuple[int, bytes, bytes | None]] = []
        self.sizes: list[int] = []
        self.refuses = False
        self.is_frozen = False

    def get_many(self, state: StateName, partition: int, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the state of each key."""
        addresses = [(state, partition, key) for key in keys]
        self.reads += addresses
        return [self.states.get(address) for address in addresses]

    def put_many(self, state: StateName, partition: int, keys: Sequence[bytes], values: Sequence[bytes | None]) -> None:
        """Write the state of each key; None deletes it."""
        if self.refuses:
            raise OSError("disk full")
        self.sizes.append(len(keys))
        for key, value in zip(keys, values, strict=True):
            self.writes.append((partition, key, value))
            if value is None:
                self.states.pop((state, partition, key), None)
            else:
                self.states[state, partition, key] = value

    def scan(self, state: StateName, partition: int, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values from a key on."""
        for (of, number, key), value in sorted(self.states.items()):
            if (of, number) == (state, partition) and key >= start:
                yield key, value

    def frozen(self) -> bool:
        """Say whether a write would wait."""
        return self.is_frozen
