"""The contract of a subtask's state: three families of byte keys and values, snapshot to a folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from twopc.state.changes import Changes


class Family(Enum):
    """Key spaces that never mix."""

    POSITIONS = "positions"
    OPERATOR = "operator"
    KEYED = "keyed"


class Frozen(Protocol):
    """The state as it was when it was frozen."""

    def write(self, folder: Path) -> None:
        """Write it, once, into `folder`, which must not exist yet, as files that never change afterwards.

        Any thread may call; raises CheckpointDeclined if that can't be done.
        """


class StateBackend(ABC):
    """A subtask's state. Used by one thread, but for what `freeze` returns.

    Nothing is durable before a snapshot of it is: the backend keeps no write-ahead log.
    """

    @classmethod
    @abstractmethod
    def open_fresh(cls, folder: Path) -> Self:
        """Open an empty state in `folder`, which must not exist yet."""

    @classmethod
    @abstractmethod
    def open_restored(cls, folder: Path) -> Self:
        """Open what a snapshot holds, which was brought to `folder`; raise CheckpointCorrupted if it can't be that."""

    @abstractmethod
    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none, in the order of `keys`."""

    @abstractmethod
    def put_many(self, family: Family, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write all items atomically; a value of None deletes the key."""

    @abstractmethod
    def scan(self, family: Family, prefix: bytes = b"", start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield the items whose key is `prefix` and then `start` or what comes behind it, in key order.

        Raises CheckpointCorrupted if a read fails.
        """

    @abstractmethod
    def first_from(self, family: Family, start: bytes) -> tuple[bytes, bytes] | None:
        """Return the item with the smallest key that is not smaller than `start`, None if there is none."""

    @abstractmethod
    def delete_prefix(self, family: Family, prefix: bytes) -> None:
        """Delete every key that starts with `prefix`, atomically; an empty prefix empties the family."""

    @abstractmethod
    def key_count(self) -> int:
        """Return about how many keys of keyed state there are: for people, never for a decision."""

    @abstractmethod
    def freeze(self) -> Frozen:
        """Fix everything written before, atomically, for a snapshot that another thread writes.

        Reads go on meanwhile; the next write may wait until the snapshot is written.
        """

    def frozen(self) -> bool:
        """Say whether a write would have to wait, because what `freeze` returned is not written yet."""
        return False

    def changes(self) -> Changes | None:
        """Return what was written since the last `freeze`, or since the state was empty if it never was frozen.

        None if that is unknown, or too much to store by itself.
        """
        return None

    def snapshot(self, folder: Path) -> None:
        """Write a snapshot of the whole state into `folder` at once."""
        self.freeze().write(folder)

    @abstractmethod
    def close(self) -> None:
        """Let go of files and locks. What was not snapshotted is lost."""
