"""The state backend on dicts, for tests and simulation: the same contract as RocksDB's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from twopc.errors import CheckpointCorrupted, CheckpointDeclined
from twopc.protocol.envelope import decode_fact, encode_fact
from twopc.state.backend import Family, StateBackend
from twopc.state.changes import Changes, whole_state_in

_KIND = "memory-state"
_FILE = "state.json"
_FAMILIES = tuple(Family)


class MemoryBackend(StateBackend):
    """State in dicts; a snapshot is one file."""

    def __init__(self) -> None:
        self._families: dict[Family, dict[bytes, bytes]] = {family: {} for family in _FAMILIES}
        self._open = True

    @classmethod
    def open_fresh(cls, folder: Path) -> Self:
        """Open an empty state; `folder` is made, and must not exist yet, as with RocksDB."""
        folder.mkdir(mode=0o700)
        return cls()

    @classmethod
    def open_restored(cls, folder: Path) -> Self:
        """Open what a snapshot holds; raise CheckpointCorrupted if it can't be what was written."""
        backend = cls()
        whole = whole_state_in(folder)
        if whole is not None:
            for family, items in whole.families.items():
                backend.put_many(family, list(items.items()))
            return backend
        path = folder / _FILE
        try:
            body = decode_fact(_KIND, path.read_bytes(), str(path))
        except OSError as error:
            raise CheckpointCorrupted(f"{path} can't be read, so no state can be restored from it: {error}") from error
        for family, items in Changes.of_json(body, str(path), is_whole=True).families.items():
            backend.put_many(family, list(items.items()))
        return backend

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        found = self._of(family)
        return [found.get(key) for key in keys]

    def put_many(self, family: Family, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        found = self._of(family)
        for key, value in items:
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value

    def scan(self, family: Family, prefix: bytes = b"", start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        found = self._of(family)
        first = prefix + start
        yield from [(key, found[key]) for key in sorted(found) if key.startswith(prefix) and key >= first]

    def first_from(self, family: Family, start: bytes) -> tuple[bytes, bytes] | None:
        found = self._of(family)
        key = min((key for key in found if key >= start), default=None)
        return None if key is None else (key, found[key])

    def delete_prefix(self, family: Family, prefix: bytes) -> None:
        self._families[family] = {key: value for key, value in self._of(family).items() if not key.startswith(prefix)}

    def key_count(self) -> int:
        return len(self._of(Family.KEYED))

    def freeze(self) -> FrozenMemory:
        return FrozenMemory({family: list(self.scan(family)) for family in _FAMILIES})

    def changes(self) -> Changes:
        return Changes({family: dict(items) for family, items in self._families.items()}, is_whole=True)

    def close(self) -> None:
        self._open = False

    def _of(self, family: Family) -> dict[bytes, bytes]:
        assert self._open, "the backend is closed"
        return self._families[family]


class FrozenMemory:
    """A copy."""

    def __init__(self, items: Mapping[Family, Sequence[tuple[bytes, bytes]]]) -> None:
        self._items = items

    def write(self, folder: Path) -> None:
        body = Changes({family: dict(self._items[family]) for family in _FAMILIES}, is_whole=True).items
        try:
            folder.mkdir(mode=0o700)
            (folder / _FILE).write_bytes(encode_fact(_KIND, body))
        except OSError as error:
            raise CheckpointDeclined(f"no snapshot could be written to {folder}: {error}") from error
