"""Where one job's durable files are: four verbs over relative names, on disk and in memory.

Both keep the promise of `twopc.storage.files`: a name is created once, whole, or not at all.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from twopc.config import refuse_url
from twopc.errors import ConfigurationError
from twopc.protocol.layout import LEDGER, TWINS, checkpoint_of_folder, entry_sequence, lost_entries
from twopc.storage import files
from twopc.storage.safe_read import read_fact

_NEVER_BY_ITSELF = (NotADirectoryError, FileExistsError, FileNotFoundError, PermissionError)
"""What waiting does not mend; a full disk it may."""


def check_checkpoint_folder(path: Path) -> None:
    """Make the folder of all checkpoints; raise ConfigurationError, which names it, if it can't hold any."""
    refuse_url(str(path))
    try:
        files.make_folder(path)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        if isinstance(error, _NEVER_BY_ITSELF) or error.errno == errno.EROFS:
            raise ConfigurationError(
                f"checkpoints can't be kept in {path}: {error.strerror}; name a folder that can be written to "
                "(--checkpoint-dir)"
            ) from error


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

    def remove_folders(self, folders: Sequence[str]) -> None:
        """Remove folders and all in them; one that is gone already is fine."""
        ...

    def sweep(self) -> None:
        """Delete what earlier crashes left half-written or half-removed; only the ledger's one writer may do so."""
        ...


class FolderStorage:
    """A job's files in a folder of this machine. The folder is made when something is first stored."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._twins = root / TWINS
        self._has_folders = False

    def create_once(self, name: str, data: bytes) -> None:
        # Two fsyncs, of the bytes and of the name: docs/experiments/coordinator_scale.md says who waits for which.
        self._make_folders()
        path = self._root / name
        checkpoint_id = checkpoint_of_folder(path.parent.name)
        if checkpoint_id is None:
            files.create_once(path, data, twin=self._twin(name))
        else:
            files.create_with_folder(path, data, checkpoint=checkpoint_id)

    def read(self, name: str) -> bytes:
        return read_fact(self._root, name, f"{self._root.name}/{name}")

    def list(self, folder: str) -> list[str]:
        try:
            return [name for name in os.listdir(self._root / folder) if not name.startswith(".")]
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> None:
        # In this order: a second name without the first says that the entry was lost.
        twin = self._twin(name)
        if twin is not None:
            files.delete(twin)
        files.delete(self._root / name)

    def remove_folders(self, folders: Sequence[str]) -> None:
        files.remove_folders([self._root / folder for folder in folders])

    def sweep(self) -> None:
        files.sweep_removed(self._root)
        files.sweep_unfinished(self._root / LEDGER)
        for name in self.list(""):
            if checkpoint_of_folder(name) is not None:
                files.sweep_unfinished(self._root / name)
        self._mend_twins()

    def _make_folders(self) -> None:
        if not self._has_folders:
            for folder in (self._root, self._root / LEDGER, self._twins):
                files.make_folder(folder)
            self._has_folders = True

    def _twin(self, name: str) -> Path | None:
        folder, _, file = name.partition("/")
        return self._twins / file if folder == LEDGER and entry_sequence(file) is not None else None

    def _mend_twins(self) -> None:
        """Give entries the second names that a crash kept from them, and take away those that it left alone."""
        names, twins = frozenset(self.list(LEDGER)), frozenset(self.list(TWINS))
        for name in names - twins:
            files.link_again(self._root / LEDGER / name, self._twins / name)
        lost = lost_entries(names, twins)
        for name in twins - names:
            if entry_sequence(name) not in lost:
                files.delete(self._twins / name)


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

    def remove_folders(self, folders: Sequence[str]) -> None:
        for name in [name for name in self.files if name.partition("/")[0] in folders]:
            del self.files[name]

    def sweep(self) -> None:
        """Nothing is ever half-written here."""
