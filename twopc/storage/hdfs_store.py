"""A checkpoint store in a folder of HDFS.

Invariants:

- A name of `create_once` appears by the rename of a closed file, without overwriting: the name node decides, and of two
  creators one succeeds. (HDFS's own create gives a name to a file that is still empty.)
- A rename that is refused may be the second try of one that was done, so what is there is compared before anybody
  believes that the race was lost.
- A creator deletes what it has under a temporary name, whatever happened: a rename that is still on its way then finds
  nothing to rename.
- Folders of checkpoints go with the last name in them.
"""

from __future__ import annotations

import errno
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from twopc.errors import ConfigurationError
from twopc.faults.points import CrashPoint, reached
from twopc.protocol.layout import checkpoint_of_folder, checkpoint_of_metadata
from twopc.storage import files
from twopc.storage.contents import CountedStream
from twopc.storage.hdfs import Hdfs
from twopc.storage.probes import abandoned, probe_name
from twopc.storage.store import CheckpointStore, Content, OpenObject, StoredObject
from twopc.storage.transfers import side_by_side

_NEVER_BY_ITSELF = (PermissionError, NotADirectoryError, FileExistsError)
"""Errors that waiting does not mend."""


class HdfsStore(CheckpointStore):
    """`root` is the folder that this store's names stand in; it begins with '/'."""

    at_once = 8
    """Each waits half a second for its file to be closed, and holds a few MB."""

    def __init__(self, hdfs: Hdfs, root: str) -> None:
        self._hdfs = hdfs
        self._root = root

    def within(self, part: str) -> HdfsStore:
        return HdfsStore(self._hdfs, f"{self._root}/{part}")

    def prepare(self) -> None:
        probe = self._path(probe_name(self.creator()))
        try:
            self._hdfs.make_folder(self._root)
            self._hdfs.write_small(probe, b"")
            self._hdfs.delete(probe)
            self.delete(self.left_over())
        except _NEVER_BY_ITSELF as error:
            raise ConfigurationError(
                f"checkpoints can't be kept in {self.place()}: {error.strerror}; name a folder of HDFS that this user "
                "may list, read, write and delete in (--checkpoint-dir)"
            ) from error
        except OSError:
            # It is away now, and may be there when it is needed.
            return

    def left_over(self) -> list[str]:
        return abandoned(entry.name for entry in self._hdfs.listed(self._root))

    def establish(self) -> None:
        """Folders are made with the first name in them."""

    def create_once(self, name: str, data: bytes) -> None:
        checkpoint = checkpoint_of_metadata(name)
        temporary = self._temporary(self._make_folder(name))
        try:
            self._hdfs.write_small(temporary, data)
            if checkpoint is not None:
                reached(CrashPoint.COORDINATOR_METADATA_UNNAMED, checkpoint=checkpoint)
            self._name(temporary, name, data)
        finally:
            with suppress(OSError):
                self._hdfs.delete(temporary)
        if checkpoint is not None:
            reached(CrashPoint.COORDINATOR_METADATA_NAMED, checkpoint=checkpoint)

    def _name(self, temporary: str, name: str, data: bytes) -> None:
        path = self._path(name)
        try:
            self._hdfs.rename(temporary, path)
        except (FileExistsError, FileNotFoundError):
            if self._there(path) != data:
                raise FileExistsError(errno.EEXIST, "it is there, with other bytes", self.place(name)) from None

    def _there(self, path: str) -> bytes:
        """Return what stands in the way of a name; if nothing does, it was deleted since: try again."""
        try:
            return self._hdfs.read(path)
        except FileNotFoundError as error:
            raise OSError(errno.EAGAIN, "it could not be named, and none is there", error.filename) from None

    def put(self, files_to_put: Iterable[tuple[str, Content]]) -> list[StoredObject]:
        return list(side_by_side(self._put, files_to_put, self.at_once))

    def _put(self, file: tuple[str, Content]) -> StoredObject:
        name, content = file
        self._make_folder(name)
        counted = CountedStream(content)
        self._hdfs.write(self._path(name), counted)
        return counted.stored(name)

    def get(self, name: str) -> bytes:
        return self._hdfs.read(self._path(name))

    @contextmanager
    def open(self, name: str) -> Iterator[OpenObject]:
        yield OpenObject(*self._hdfs.open(self._path(name)))

    def bring(self, name: str, target: Path) -> None:
        with self.open(name) as reading:
            files.write_chunks(target, reading.chunks)

    def names(self, prefix: str = "") -> list[str]:
        folder, _, start = prefix.rpartition("/")
        return sorted(self._below(folder, start))

    def parts(self) -> list[str]:
        return sorted(entry.name for entry in self._hdfs.listed(self._root) if not entry.name.startswith("."))

    def delete(self, names: Iterable[str]) -> None:
        self._delete_emptied(map(self._delete, names))

    def delete_unordered(self, names: Iterable[str]) -> None:
        self._delete_emptied(side_by_side(self._delete, names, self.at_once))

    def _delete(self, name: str) -> str:
        """Delete a name; return its first part."""
        self._hdfs.delete(self._path(name))
        return name.partition("/")[0]

    def _delete_emptied(self, parts: Iterable[str]) -> None:
        """Delete those of these that are folders of checkpoints without a name."""
        for folder in dict.fromkeys(parts):
            if checkpoint_of_folder(folder) is not None and not any(self._below(folder, "")):
                # With what crashes left half-done in it.
                self._hdfs.delete(self._path(folder))

    def sweep(self, prefix: str) -> None:
        folder = self._path(prefix.rpartition("/")[0])
        for entry in self._hdfs.listed(folder):
            if entry.name.startswith(files.TEMPORARY):
                self._hdfs.delete(f"{folder}/{entry.name}")

    def place(self, name: str = "") -> str:
        return f"{self._hdfs.url}{self._path(name)}"

    @property
    def identity(self) -> str:
        return self.place()

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}".rstrip("/")

    def _make_folder(self, name: str) -> str:
        """Make the folder of a name; return its path."""
        folder = self._path(name).rpartition("/")[0]
        self._hdfs.make_folder(folder)
        return folder

    def _temporary(self, folder: str) -> str:
        return f"{folder}/{files.TEMPORARY}{secrets.token_hex(16)}"

    def _below(self, folder: str, start: str) -> Iterator[str]:
        for entry in self._hdfs.listed(self._path(folder)):
            if entry.name.startswith(".") or not entry.name.startswith(start):
                continue
            name = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_folder:
                yield from self._below(name, "")
            else:
                yield name
