"""A checkpoint store in a bucket of an object store: Amazon S3 and what speaks it, Google Cloud Storage, Azure.

Invariants:

- A name of `create_once` is made by a conditional create (S3: `If-None-Match: *`), which the server decides: of two
  creators one succeeds. A client library that lost the answer tries again and meets its own object, so what is there is
  compared before anybody believes that the race was lost.
- A server that ignores the condition, and overwrites, is refused by `prepare`.
- An object appears whole or not at all. What an upload in parts left behind when its process ended has no name; a
  lifecycle rule of the bucket deletes it.
- Whatever the server has answered to is durable, and seen by every reader after that; a store whose listings lag behind
  is none of these.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from twopc.errors import ConfigurationError
from twopc.faults.points import CrashPoint, reached
from twopc.protocol.layout import checkpoint_of_metadata
from twopc.storage import files
from twopc.storage.bucket import Bucket
from twopc.storage.contents import CountedStream
from twopc.storage.probes import abandoned, probe_name
from twopc.storage.store import CheckpointStore, Content, OpenObject, StoredObject
from twopc.storage.transfers import side_by_side


class ObjectStore(CheckpointStore):
    """`prefix`, '' or ending in '/', is what this store's names stand below."""

    at_once = 4
    """With the parts of each file that are on their way it bounds the memory: see `twopc.storage.bucket`."""

    def __init__(self, bucket: Bucket, prefix: str = "") -> None:
        self._bucket = bucket
        self._prefix = prefix

    def within(self, part: str) -> ObjectStore:
        return ObjectStore(self._bucket, f"{self._prefix}{part}/")

    def prepare(self) -> None:
        try:
            self._require_conditional_create()
            self.delete(self.left_over())
        except (PermissionError, FileNotFoundError) as error:
            raise ConfigurationError(
                f"checkpoints can't be kept in {self.place()}: {error.strerror}; name a bucket that is there, and may "
                "be listed, read, written and deleted in (--checkpoint-dir)"
            ) from error
        except OSError:
            # It is away now, and may be there when it is needed.
            return

    def _require_conditional_create(self) -> None:
        name = self._prefix + probe_name(self.creator())
        self._bucket.create(name, b"first")
        try:
            self._bucket.create(name, b"second")
        except FileExistsError:
            return
        finally:
            with suppress(FileNotFoundError):
                self._bucket.delete(name)
        raise ConfigurationError(
            f"checkpoints can't be kept in {self.place()}: its server ignores conditional creates (If-None-Match) and "
            "overwrites, so two coordinators could own one job; use a server, or a version of it, that keeps to them"
        )

    def left_over(self) -> list[str]:
        return abandoned(self._bucket.parts(self._prefix))

    def establish(self) -> None:
        """A prefix needs no making."""

    def create_once(self, name: str, data: bytes) -> None:
        checkpoint = checkpoint_of_metadata(name)
        if checkpoint is not None:
            reached(CrashPoint.COORDINATOR_METADATA_UNNAMED, checkpoint=checkpoint)
        try:
            self._bucket.create(self._prefix + name, data)
        except FileExistsError:
            if self._there(name) != data:
                raise
        if checkpoint is not None:
            reached(CrashPoint.COORDINATOR_METADATA_NAMED, checkpoint=checkpoint)

    def _there(self, name: str) -> bytes:
        """Return what stands in a create's way; if nothing does, it met another, or was deleted since: try again."""
        try:
            return self.get(name)
        except FileNotFoundError as error:
            raise OSError(errno.EAGAIN, "two creates met, and none is there", error.filename) from None

    def put(self, files_to_put: Iterable[tuple[str, Content]]) -> list[StoredObject]:
        return list(side_by_side(self._put, files_to_put, self.at_once))

    def _put(self, file: tuple[str, Content]) -> StoredObject:
        name, content = file
        counted = CountedStream(content)
        self._bucket.put(self._prefix + name, counted)
        return counted.stored(name)

    def get(self, name: str) -> bytes:
        return self._bucket.get(self._prefix + name)

    @contextmanager
    def open(self, name: str) -> Iterator[OpenObject]:
        yield OpenObject(*self._bucket.open(self._prefix + name))

    def bring(self, name: str, target: Path) -> None:
        with self.open(name) as reading:
            files.write_chunks(target, reading.chunks)

    def names(self, prefix: str = "") -> list[str]:
        folder, slash, _ = (self._prefix + prefix).rpartition("/")
        below = (name[len(self._prefix) :] for name in self._bucket.names(folder + slash))
        return sorted(name for name in below if name.startswith(prefix) and "/." not in f"/{name}")

    def parts(self) -> list[str]:
        return sorted({part for part in self._bucket.parts(self._prefix) if not part.startswith(".")})

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._delete(name)

    def delete_unordered(self, names: Iterable[str]) -> None:
        for _ in side_by_side(self._delete, names, self.at_once):
            pass

    def _delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._bucket.delete(self._prefix + name)

    def place(self, name: str = "") -> str:
        return self._bucket.place(self._prefix + name)

    @property
    def identity(self) -> str:
        return self.place()
