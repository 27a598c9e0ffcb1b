"""Keyed state in a dict: the store of a stateful_map where nothing has to outlive the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twopc.kafka.topic_partition import TopicPartition

Address = tuple[str, TopicPartition, bytes]
"""Name of the state, input partition, key."""


class DictStore:
    """Notes what it is asked; refuses to write, or says that a write would wait, as long as it is told to."""

    def __init__(self, states: Mapping[Address, bytes] | None = None) -> None:
        self.states = dict(states or {})
        self.reads: list[Address] = []
        self.writes: list[tuple[TopicPartition, bytes, bytes | None]] = []
        self.sizes: list[int] = []
        self.refuses = False
        self.is_frozen = False

    def get_many(self, name: str, partition: TopicPartition, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the state of each key."""
        addresses = [(name, partition, key) for key in keys]
        self.reads += addresses
        return [self.states.get(address) for address in addresses]

    def put_many(
        self, name: str, partition: TopicPartition, keys: Sequence[bytes], states: Sequence[bytes | None]
    ) -> None:
        """Write the state of each key; None deletes it."""
        if self.refuses:
            raise OSError("disk full")
        self.sizes.append(len(keys))
        for key, state in zip(keys, states, strict=True):
            self.writes.append((partition, key, state))
            if state is None:
                self.states.pop((name, partition, key), None)
            else:
                self.states[name, partition, key] = state

    def frozen(self) -> bool:
        """Say whether a write would wait."""
        return self.is_frozen
