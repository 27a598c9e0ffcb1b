"""A checkpoint store in a folder of a file system, which all machines of a job share.

Invariants:

- A name of `create_once` appears by a hard link to a file that is whole and durable, so of two creators one succeeds.
- A folder that this store makes is durable before anything that is stored in it counts as stored; what it stands in is
  made by `establish` only: a machine on which it is not mounted has an empty place under the same path.
- A file that may be taken as the store's own is hard-linked, or else copied. One whose fsync failed is never linked
  again, because a second fsync may succeed over lost pages: its bytes are copied to a new file instead.
- Entries of a ledger have a second name each, by which the loss of the newest is noticed.
- No symbolic link is followed below the store's folder.
"""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from twopc.errors import ConfigurationError
from twopc.protocol.layout import ENTRIES, LEDGER, TWINS, checkpoint_of_folder, checkpoint_of_metadata, entry_sequence
from twopc.storage import files
from twopc.storage.local_files import FileIdentity, copy_file, digest_of, link_file, read_chunks, seal_file
from twopc.storage.safe_read import open_stored, read_fact
from twopc.storage.store import CheckpointStore, Content, OpenObject, StoredObject

_NEVER_BY_ITSELF = (NotADirectoryError, FileExistsError, FileNotFoundError, PermissionError)
"""Errors that waiting does not mend; a full disk it may."""


class LocalStore(CheckpointStore):
    """Names are paths below `root`; `shown` stands before them in messages."""

    def __init__(self, root: Path, shown: str = "") -> None:
        self.root = root
        self._shown = shown
        self._durable: set[str] = set()
        self._unsynced: dict[FileIdentity, str] = {}

    def within(self, part: str) -> LocalStore:
        return LocalStore(self.root / part, f"{self._shown}{part}/")

    def prepare(self) -> None:
        try:
            files.make_folder(self.root)
            with tempfile.TemporaryFile(dir=self.root):
                pass
        except OSError as error:
            if isinstance(error, _NEVER_BY_ITSELF) or error.errno == errno.EROFS:
                raise ConfigurationError(
                    f"checkpoints can't be kept in {self.root}: {error.strerror}; name a folder that can be written to "
                    "(--checkpoint-dir)"
                ) from error

    def establish(self) -> None:
        for folder in (self.root, self.root / LEDGER, self.root / TWINS):
            files.make_folder(folder)
        self._durable.add(LEDGER)

    def create_once(self, name: str, data: bytes) -> None:
        # What is created waits for two fsyncs, of its bytes and of its name; docs/decisions/0020 says who else waits.
        folder = self._make_folder(name)
        path = self.root / name
        try:
            files.create_once(path, data, checkpoint=checkpoint_of_metadata(name) or 0)
        except FileExistsError:
            if self.get(name) != data:
                raise
            # Ours: a file server has done it, and its answer was lost.
            files.disk.sync_folder(path.parent)
        self._make_durable(folder, path)
        # Last: a name that is taken back, because its folder could not be made durable, must leave no second name.
        twin = self._twin(name)
        if twin is not None:
            files.link_again(path, twin)

    def put(self, files_to_put: Iterable[tuple[str, Content]]) -> list[StoredObject]:
        stored: list[StoredObject] = []
        folders: dict[str, None] = {}
        name = ""
        try:
            for name, content in files_to_put:
                folders[self._make_folder(name)] = None
                stored.append(self._write(name, content))
            for folder in folders:
                files.disk.sync_folder(self.root / folder)
                self._make_durable(folder)
        except BaseException:
            for each in (name, *(item.name for item in stored)):
                files.discard_file(self.root / each)
            raise
        return stored

    def get(self, name: str) -> bytes:
        return read_fact(self.root, name, self._shown + name)

    @contextmanager
    def open(self, name: str) -> Iterator[OpenObject]:
        with open_stored(self.root, name, self._shown + name) as descriptor:
            yield OpenObject(os.fstat(descriptor).st_size, read_chunks(descriptor))

    def content(self, name: str) -> Content:
        # Opened once, so that no symbolic link leads to it.
        with open_stored(self.root, name, self._shown + name):
            return self.root / name

    def bring(self, name: str, target: Path) -> None:
        source = self.root / name
        # Open meanwhile, so it is a regular file, and no symbolic link leads to it.
        with open_stored(self.root, name, self._shown + name):
            if not link_file(source, target):
                copy_file(source, target)

    def names(self, prefix: str = "") -> list[str]:
        folder, _, start = prefix.rpartition("/")
        return sorted(self._below(folder, start))

    def parts(self) -> list[str]:
        return sorted(self._listed(""))

    def delete(self, names: Iterable[str]) -> None:
        checkpoints: dict[str, None] = {}
        for name in names:
            self._delete(name)
            part = name.partition("/")[0]
            if checkpoint_of_folder(part) is not None:
                checkpoints[part] = None
        for folder in checkpoints:
            if all(map(self._is_folder, self._below(folder, ""))):
                # With what crashes left half-done in it.
                files.discard(self.root / folder)

    def _delete(self, name: str) -> None:
        # In this order: a second name without the first says that the entry was lost.
        twin = self._twin(name)
        if twin is not None:
            files.delete(twin)
        if self._is_folder(name):
            files.remove_tree(self.root / name)
        else:
            files.delete(self.root / name)

    def lost(self, prefix: str) -> Mapping[str, str]:
        if prefix != ENTRIES:
            return {}
        # Second names first: of an entry that is deleted meanwhile it is the one that goes first.
        twins = self._listed(TWINS)
        names = frozenset(self._listed(LEDGER))
        return {f"{ENTRIES}{name}": f"{self._shown}{TWINS}/{name}" for name in twins if name not in names}

    def sweep(self, prefix: str) -> None:
        folder = prefix.rpartition("/")[0]
        files.sweep_unfinished(self.root / folder)
        if folder == LEDGER:
            self._mend_twins()

    def place(self, name: str = "") -> str:
        return str(self.root / name)

    @property
    def identity(self) -> str:
        return str(self.root.resolve())

    def _write(self, name: str, content: Content) -> StoredObject:
        path = self.root / name
        files.delete(path)
        match content:
            case bytes():
                files.write_new(path, content)
                return StoredObject(name, len(content), hashlib.sha256(content).hexdigest())
            case Path():
                return self._take(name, content)
            case _:
                return StoredObject(name, *files.write_chunks(path, content))

    def _take(self, name: str, source: Path) -> StoredObject:
        path, identity = self.root / name, FileIdentity.of(source)
        digest = self._unsynced.get(identity)
        if digest is None:
            digest = digest_of(source)
            if link_file(source, path):
                self._seal(path, identity, digest)
                return StoredObject(name, identity.size_bytes, digest)
        size, copied = copy_file(source, path)
        if copied != digest:
            raise OSError(f"{source} changed while it was stored, or the disk returned other bytes")
        return StoredObject(name, size, digest)

    def _seal(self, path: Path, identity: FileIdentity, digest: str) -> None:
        try:
            seal_file(path)
        except OSError:
            # What is read of it from now on may be less than was written: a copy must still have this digest.
            self._unsynced[identity] = digest
            raise

    def _make_folder(self, name: str) -> str:
        """Make the folder of a name, in what is there; return its own name."""
        folder = name.rpartition("/")[0]
        if folder not in self._durable:
            with suppress(FileExistsError):
                files.disk.make_folder(self.root / folder)
        return folder

    def _make_durable(self, folder: str, path: Path | None = None) -> None:
        """Sync the folder's own name, if this store has not. By now it is on the disk, with what was synced below it.

        Where that fails, a name that was created in it is taken back.
        """
        if folder in self._durable:
            return
        files.sync_or_take_back(self.root, path)
        if checkpoint_of_folder(folder) is None:
            self._durable.add(folder)

    def _below(self, folder: str, start: str) -> Iterator[str]:
        for part in self._listed(folder):
            if part.startswith(start):
                name = f"{folder}/{part}" if folder else part
                if not self._is_folder(name):
                    yield name
                    continue
                inner = list(self._below(name, ""))
                # An empty folder that stands where a file should be must not look like nothing.
                yield from inner or ([name] if folder else [])

    def _listed(self, folder: str) -> list[str]:
        try:
            return [name for name in os.listdir(self.root / folder) if not name.startswith(".")]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _is_folder(self, name: str) -> bool:
        path = self.root / name
        return path.is_dir() and not path.is_symlink()

    def _twin(self, name: str) -> Path | None:
        folder, _, file = name.partition("/")
        return self.root / TWINS / file if folder == LEDGER and entry_sequence(file) is not None else None

    def _mend_twins(self) -> None:
        """Give entries the second names that a crash kept from them, and take away those that it left alone.

        What comes after the newest entry stays: it was lost, and nobody has deleted it.
        """
        names, twins = frozenset(self._listed(LEDGER)), frozenset(self._listed(TWINS))
        for name in names - twins:
            files.link_again(self.root / LEDGER / name, self.root / TWINS / name)
        newest = max(names, default="")
        for name in twins - names:
            if name < newest:
                files.delete(self.root / TWINS / name)
