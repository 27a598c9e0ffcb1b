"""A checkpoint store in memory, for tests and simulation: outlives those that are opened on it, as a disk does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from twopc.storage.store import CheckpointStore, Content, OpenObject, StoredObject

MEMORY = "memory:"


class MemoryStore(CheckpointStore):
    """`data` holds everything, by its whole name; `prefix` is what this store's names stand below."""

    def __init__(self, data: dict[str, bytes] | None = None, prefix: str = "") -> None:
        self.data = {} if data is None else data
        self._prefix = prefix

    def within(self, part: str) -> MemoryStore:
        return MemoryStore(self.data, f"{self._prefix}{part}/")

    def establish(self) -> None:
        """Memory is there."""

    def create_once(self, name: str, data: bytes) -> None:
        if self.data.setdefault(self._prefix + name, data) != data:
            raise FileExistsError(name)

    def put(self, files: Iterable[tuple[str, Content]]) -> list[StoredObject]:
        stored = []
        for name, content in files:
            data = _bytes_of(content)
            self.data[self._prefix + name] = data
            stored.append(StoredObject(name, len(data), hashlib.sha256(data).hexdigest()))
        return stored

    def get(self, name: str) -> bytes:
        try:
            return self.data[self._prefix + name]
        except KeyError:
            raise FileNotFoundError(name) from None

    @contextmanager
    def open(self, name: str) -> Iterator[OpenObject]:
        data = self.get(name)
        yield OpenObject(len(data), iter([data]))

    def bring(self, name: str, target: Path) -> None:
        with target.open("xb") as file:
            file.write(self.get(name))

    def names(self, prefix: str = "") -> list[str]:
        start = self._prefix + prefix
        return sorted(name[len(self._prefix) :] for name in list(self.data) if name.startswith(start))

    def parts(self) -> list[str]:
        return sorted({name.partition("/")[0] for name in self.names()})

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self.data.pop(self._prefix + name, None)

    def place(self, name: str = "") -> str:
        return f"{MEMORY}/{self._prefix}{name}".rstrip("/")

    @property
    def identity(self) -> str:
        return f"{MEMORY}//{self._prefix}".removesuffix("/")


def _bytes_of(content: Content) -> bytes:
    match content:
        case bytes():
            return content
        case Path():
            return content.read_bytes()
        case _:
            return b"".join(content)
