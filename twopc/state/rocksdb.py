"""The state backend on RocksDB: with `rocksdb_options` the only importer of rocksdict.

Invariants:

- Raw mode everywhere: rocksdict's default mode unpickles what it reads, so that a planted value would run code.
- RocksDB opens a folder whose MANIFEST lost its tail as an empty database, with no error. So every snapshot holds a
  sentinel, asserted when it is opened again; and `storage` has compared every file's digest before. Flushes are
  atomic over all families: without that, a lost tail takes the last family with it and leaves the sentinel.
- An iterator that meets a damaged block ends as if there were no more keys: its status is asked after every scan.
- The write-ahead log is off: a snapshot is the durability.
- From `freeze` until its snapshot is written, nothing is: writers wait, readers don't.
- A snapshot that holds changes (`twopc.state.changes`) is opened with them written to it; one that stood in the
  metadata is written to a new database.
"""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self, cast

from rocksdict import AccessType, Checkpoint, Options, Rdict, WriteBatch, WriteOptions

from twopc.errors import CheckpointCorrupted, CheckpointDeclined
from twopc.state.backend import Family, StateBackend
from twopc.state.changes import ChangeLog, Changes, changes_in, whole_state_in
from twopc.state.layout import after_prefix
from twopc.state.rocksdb_options import MemtableFilter, database_options, without_log

log = logging.getLogger(__name__)

_SENTINEL_KEY = b"twopc-snapshot"
_SENTINEL_VALUE = b"1"


class RocksDBBackend(StateBackend):
    """One RocksDB with a column family per Family; made by `open_fresh`, `open_restored` or `open_read_only`."""

    def __init__(self, folder: Path, options: Options, access: AccessType | None = None) -> None:
        self._folder = folder
        self._db = Rdict(
            str(folder),
            options=options,
            column_families={family.value: options for family in Family},
            access_type=access or AccessType.read_write(),
        )
        self._families = {family: self._db.get_column_family(family.value) for family in Family}
        self._handles = {family: self._db.get_column_family_handle(family.value) for family in Family}
        self._filters = {family: MemtableFilter(opened) for family, opened in self._families.items()}
        self._write_options = without_log()
        self._not_frozen = threading.Lock()
        self._log = ChangeLog()

    @classmethod
    def open_fresh(cls, folder: Path) -> Self:
        """Open an empty state in `folder`, which must not exist yet."""
        options = database_options()
        options.create_if_missing(True)
        options.set_error_if_exists(True)
        try:
            backend = cls(folder, options)
        except Exception as error:
            raise OSError(errno.EIO, f"RocksDB can't be created: {error}", str(folder)) from error
        backend._log.begin()
        return backend

    @classmethod
    def open_restored(cls, folder: Path) -> Self:
        """Open what a snapshot holds, in place; raise CheckpointCorrupted if it can't be what was written."""
        whole = whole_state_in(folder)
        written = whole or changes_in(folder)
        backend = cls._opened(folder, AccessType.read_write()) if whole is None else cls.open_fresh(folder)
        try:
            for family, items in written.families.items() if written is not None else ():
                backend.put_many(family, list(items.items()))
            if whole is None:
                backend._note_all()
        except BaseException:
            backend.close()
            raise
        return backend

    @classmethod
    def open_read_only(cls, folder: Path) -> Self:
        """Open what a snapshot holds as it is, to look at: nothing can be written.

        RocksDB still writes files of its own into `folder`: it must be a private one.
        """
        if changes_in(folder) is not None or whole_state_in(folder) is not None:
            backend = cls.open_restored(folder)
            try:
                backend._seal()
            finally:
                backend.close()
        return cls._opened(folder, AccessType.read_only())

    @classmethod
    def _opened(cls, folder: Path, access: AccessType) -> Self:
        options = database_options()
        options.create_if_missing(False)
        if not folder.is_dir():
            raise CheckpointCorrupted(f"{folder} is not there, so no state can be restored from it")
        try:
            backend = cls(folder, options, access)
        except Exception as error:
            raise CheckpointCorrupted(f"RocksDB refuses to open {folder}: {error}") from error
        try:
            backend._assert_sentinel()
        except BaseException:
            backend.close()
            raise
        return backend

    def _assert_sentinel(self) -> None:
        try:
            found = self._db.get(_SENTINEL_KEY)
        except Exception as error:
            raise self._unreadable(error) from error
        if found != _SENTINEL_VALUE:
            raise CheckpointCorrupted(
                f"{self._folder} opens, but lacks the mark that every snapshot holds: part of it was lost"
            )

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        self._filters[family].asked(len(keys))
        try:
            return cast("list[bytes | None]", self._families[family].get(list(keys)))
        except Exception as error:
            raise self._unreadable(error) from error

    def put_many(self, family: Family, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        noted = list(items) if self._log.is_noting else []
        batch = WriteBatch(raw_mode=True)
        handle = self._handles[family]
        for key, value in noted or items:
            if value is None:
                batch.delete(key, handle)
            else:
                batch.put(key, value, handle)
        self._write(batch)
        self._log.note(family, noted)

    def scan(self, family: Family, prefix: bytes = b"", start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        try:
            found = self._families[family].iter()
            found.seek(prefix + start)
            while found.valid():
                key = found.key()
                if not key.startswith(prefix):
                    break
                yield key, found.value()
                found.next()
            found.status()
        except Exception as error:
            raise self._unreadable(error) from error

    def first_from(self, family: Family, start: bytes) -> tuple[bytes, bytes] | None:
        try:
            found = self._families[family].iter()
            found.seek(start)
            if found.valid():
                return found.key(), found.value()
            found.status()
            return None
        except Exception as error:
            raise self._unreadable(error) from error

    def delete_prefix(self, family: Family, prefix: bytes) -> None:
        end = after_prefix(prefix)
        if end is None:
            self.put_many(family, [(key, None) for key, _ in self.scan(family, prefix)])
            return
        batch = WriteBatch(raw_mode=True)
        batch.delete_range(prefix, end, self._handles[family])
        self._write(batch)
        self._log.note_prefix_deleted(family, prefix)

    def key_count(self) -> int:
        return self._families[Family.KEYED].property_int_value("rocksdb.estimate-num-keys") or 0

    def freeze(self) -> FrozenDatabase:
        self._not_frozen.acquire()
        self._log.restart()
        return FrozenDatabase(self._db, self._not_frozen, self._write_options)

    def frozen(self) -> bool:
        return self._not_frozen.locked()

    def changes(self) -> Changes | None:
        return self._log.since_base()

    def close(self) -> None:
        self._handles.clear()
        # A family keeps the database, and its lock, open as long as it is open itself.
        for part in (*self._families.values(), self._db):
            try:
                part.close()
            except Exception as error:  # noqa: BLE001 - rocksdict raises nothing else
                # Nothing here is read again, and a later attempt may have deleted it: it must hide no other error.
                log.info("closing the state in %s: %s", self._folder, error)

    def _note_all(self) -> None:
        """Begin to know the whole state, if it is small: it can stand in the metadata then."""
        self._log.begin()
        for family in Family:
            for item in self.scan(family):
                self._log.note(family, [item])
                if not self._log.is_noting:
                    return

    def _seal(self) -> None:
        """Bring all to files, with the mark that every snapshot holds."""
        try:
            self._db.put(_SENTINEL_KEY, _SENTINEL_VALUE, self._write_options)
            self._db.flush()
            for family in self._families.values():
                family.flush()
        except Exception as error:
            raise OSError(errno.EIO, f"RocksDB can't write: {error}", str(self._folder)) from error

    def _write(self, batch: WriteBatch) -> None:
        try:
            with self._not_frozen:
                self._db.write(batch, self._write_options)
        except Exception as error:
            raise OSError(errno.EIO, f"RocksDB can't write: {error}", str(self._folder)) from error

    def _unreadable(self, error: Exception) -> CheckpointCorrupted:
        return CheckpointCorrupted(f"RocksDB can't read from {self._folder}: {error}")


class FrozenDatabase:
    """A database that nobody writes to; RocksDB's checkpoint of it takes longer than a data loop may stand still."""

    def __init__(self, db: Rdict, not_frozen: threading.Lock, options: WriteOptions) -> None:
        self._db = db
        self._not_frozen = not_frozen
        self._options = options

    def write(self, folder: Path) -> None:
        try:
            self._db.put(_SENTINEL_KEY, _SENTINEL_VALUE, self._options)
            Checkpoint(self._db).create_checkpoint(str(folder))
        except Exception as error:
            raise CheckpointDeclined(f"RocksDB could not write a snapshot to {folder}: {error}") from error
        finally:
            self._not_frozen.release()
