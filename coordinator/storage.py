"""Where one job's durable files are: four verbs over relative names, on disk and in memory.

Both keep the promise of `twopc.files`: a name is created once, whole, or not at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from twopc import files
from twopc.protocol.layout import LEDGER, checkpoint_of_folder


class Storage(Protocol):
    """The files of one job; names are relative to its folder, with '/' between."""

    def create_once(self, name: str, data: bytes) -> None:
        """Store durably; raise FileExistsError if the name is taken, another OSError if storing fails."""
        ...

    def read(self, name: str) -> bytes:
        """Return the contents; raise FileNotFoundError if there is no such name."""
        ...

    def list(self, folder: str) -> list[str]:
        """Return the names in a folder ("" is the top), in no order; nothing if it does not exist."""
        ...

    def delete(self, name: str) -> None:
        """Delete one file; one that is gone already is fine."""
        ...

    def remove_folder(self, folder: str) -> None:
        """Remove a folder and all in it; one that is gone already is fine."""
        ...

    def sweep(self) -> None:
        """Delete what earlier crashes left half-written or half-removed; only the ledger's one writer may do so."""
        ...


class FolderStorage:
    """A job's files in a folder of this machine. The folder is made when something is first stored."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def create_once(self, name: str, data: bytes) -> None:
        path = self._root / name
        files.make_folder(path.parent)
        files.create_once(path, data, checkpoint=checkpoint_of_folder(path.parent.name) or 0)

    def read(self, name: str) -> bytes:
        return (self._root / name).read_bytes()

    def list(self, folder: str) -> list[str]:
        try:
            return [entry.name for entry in (self._root / folder).iterdir() if not entry.name.startswith(".")]
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> None:
        (self._root / name).unlink(missing_ok=True)

    def remove_folder(self, folder: str) -> None:
        files.remove_folder(self._root / folder)

    def sweep(self) -> None:
        files.sweep_removed(self._root)
        files.sweep_unfinished(self._root / LEDGER)


class MemoryStorage:
    """The same in memory, for tests and simulation: outlives the ledgers opened on it, as a disk does."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def create_once(self, name: str, data: bytes) -> None:
        if name in self.files:
            raise FileExistsError(name)
        self.files[name] = data

    def read(self, name: str) -> bytes:
        try:
            return self.files[name]
        except KeyError:
            raise FileNotFoundError(name) from None

    def list(self, folder: str) -> list[str]:
        prefix = f"{folder}/" if folder else ""
        return list({name[len(prefix) :].partition("/")[0] for name in self.files if name.startswith(prefix)})

    def delete(self, name: str) -> None:
        self.files.pop(name, None)

    def remove_folder(self, folder: str) -> None:
        for name in [name for name in self.files if name.startswith(f"{folder}/")]:
            del self.files[name]

    def sweep(self) -> None:
        """Nothing is ever half-written here."""
