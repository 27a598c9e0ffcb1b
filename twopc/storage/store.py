"""The one storage of checkpoints: ledger, metadata, snapshots, and whatever reads them, stand on a `CheckpointStore`.

It promises what an object store with a conditional create can do, and no more: names and bytes. There is no rename, no
second name for the same bytes, no folder and no time of a file.

Invariants, of every implementation (`tests/storage/` holds each to them):

- what `create_once` made holds all of its bytes for good, or does not exist: never a part of them;
- of creators of one name with different bytes one succeeds, and all others are told;
- whatever a call stored is durable when it returns, and there for every reader after that;
- what `put` leaves when it fails, or its process ends, is nobody's: no name is read before something that was created
  later names it;
- names are deleted in the order in which they are given, unless nobody asks for it.

Failures are the built-in errors: FileExistsError for a name that is taken, FileNotFoundError for one that is not there,
any other OSError for a storage that refuses now; CheckpointCorrupted for what was never stored so.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from twopc.protocol.layout import ENTRIES
from twopc.storage.transfers import side_by_side

Content = bytes | Path | Iterable[bytes]
"""What may be put: bytes; a file of this machine that will never change, which a store may take as its own; a stream,
which is copied."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """The object that was put under one name."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class OpenObject:
    """The contents under a name, open to be read once."""

    size_bytes: int
    chunks: Iterator[bytes]


class CheckpointStore(ABC):
    """Names, with '/' between their parts, and bytes. Any process of a job may use one; each opens its own."""

    at_once: int = 1
    """How many names are put, read, brought or deleted at once: more than one where a call waits for a server."""

    def creator(self) -> str:
        """Return a token that nobody else has ever got.

        Who competes for a name puts one into the bytes: then what `create_once` meets under that name tells an answer
        that was lost from a race that was lost.
        """
        return secrets.token_hex(8)

    @abstractmethod
    def within(self, part: str) -> CheckpointStore:
        """Return the same store for the names below `part`."""

    def prepare(self) -> None:
        """Let the parts of this be established; raise ConfigurationError if it can't hold any, and never will."""

    def left_over(self) -> list[str]:
        """Return the names of what `prepare` left here where its process was killed: the next one deletes these."""
        return []

    @abstractmethod
    def establish(self) -> None:
        """Let names be stored here; without it they are only where somebody else has done so."""

    @abstractmethod
    def create_once(self, name: str, data: bytes) -> None:
        """Store under a name that is not taken; raise FileExistsError if other bytes are there.

        Raises another OSError if storing failed: then the name is not there, or holds these very bytes.
        """

    @abstractmethod
    def put(self, files: Iterable[tuple[str, Content]]) -> list[StoredObject]:
        """Store all of these, whatever is there under their names; raise OSError if one fails.

        Each is taken when it can be stored: no more than `at_once` are taken and not stored. They never change
        afterwards.
        """

    @abstractmethod
    def get(self, name: str) -> bytes:
        """Return what is there, which is not large."""

    def get_all(self, names: Iterable[str]) -> list[bytes]:
        """Return what is there under each of these, in their order; none is large."""
        return list(side_by_side(self.get, names, self.at_once))

    @abstractmethod
    def open(self, name: str) -> AbstractContextManager[OpenObject]:
        """Open what is there, however large, for a context."""

    def content(self, name: str) -> Content:
        """Return what is there for another store to put, as its own where that spares a copy of the bytes."""
        return self.stream(name)

    def stream(self, name: str) -> Iterator[bytes]:
        """Yield what is there, for a copy that shares nothing with it."""
        with self.open(name) as reading:
            yield from reading.chunks

    @abstractmethod
    def bring(self, name: str, target: Path) -> None:
        """Make a new file of this machine of what is there, which nobody may write to; to be verified by the caller."""

    @abstractmethod
    def names(self, prefix: str = "") -> list[str]:
        """Return the names that start with `prefix`, ascending, but for what is not whole yet."""

    @abstractmethod
    def parts(self) -> list[str]:
        """Return the first parts of all names, ascending: what `within` may be given."""

    @abstractmethod
    def delete(self, names: Iterable[str]) -> None:
        """Delete these, in this order; one that is gone already is fine."""

    def delete_unordered(self, names: Iterable[str]) -> None:
        """Delete these, whichever first: of those that are left where this fails nothing follows."""
        self.delete(names)

    def lost(self, prefix: str) -> Mapping[str, str]:
        """Return names that were created once and are gone although perhaps nobody deleted them, as far as that shows.

        Each with the place, as people name it, of another copy.
        """
        return {}

    def sweep(self, prefix: str) -> None:
        """Delete what creators that have ended left half-done; nobody may create names with this prefix meanwhile."""

    @abstractmethod
    def place(self, name: str = "") -> str:
        """Say where a name, or all of this, is: as people name it, and find it again."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """The one name of what this is, by which `twopc.storage.open` opens it from anywhere.

        What stands within it has that, '/', and the part.
        """


def jobs_in(store: CheckpointStore) -> list[str]:
    """The names of the jobs that have a ledger in this store, or had one that was lost."""
    return [part for part in store.parts() if has_ledger(store.within(part))]


def has_ledger(store: CheckpointStore) -> bool:
    """Whether a job's store has the ledger that makes it one."""
    return bool(store.names(ENTRIES) or store.lost(ENTRIES))
