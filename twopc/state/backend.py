"""The contract of a subtask's state: three families of byte keys and values, snapshot to a folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path


class Family(Enum):
    """Key spaces that never mix."""

    POSITIONS = "positions"
    OPERATOR = "operator"
    KEYED = "keyed"


class StateBackend(ABC):
    """A subtask's state. Used by one thread; `snapshot` is atomic with respect to everything written before it.

    Nothing is durable before a snapshot of it is: the backend keeps no write-ahead log.
    """

    @abstractmethod
    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none, in the order of `keys`."""

    @abstractmethod
    def put_many(self, family: Family, items: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Write all items atomically; a value of None deletes the key."""

    @abstractmethod
    def scan(self, family: Family, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield the items whose key starts with `prefix`, in key order; raise CheckpointCorrupted if a read fails."""

    @abstractmethod
    def delete_prefix(self, family: Family, prefix: bytes) -> None:
        """Delete every key that starts with `prefix`, atomically; an empty prefix empties the family."""

    @abstractmethod
    def key_count(self) -> int:
        """Return about how many keys of keyed state there are: for people, never for a decision."""

    @abstractmethod
    def snapshot(self, folder: Path) -> None:
        """Write the whole state into `folder`, which must not exist yet, as files that never change afterwards."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and locks. What was not snapshotted is lost."""
