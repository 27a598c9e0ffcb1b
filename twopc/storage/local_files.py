"""Files of a local store: linked, copied, digested. What is opened here is a regular file, never a symbolic link."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from twopc.storage import files
from twopc.storage.safe_read import open_regular

_CHUNK_BYTES = 1024 * 1024
_CANNOT_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS, errno.ENOENT})


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Tells whether an immutable file is one that was digested before."""

    name: str
    device: int
    inode: int
    size_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, path: Path) -> FileIdentity:
        found = path.lstat()
        return cls(path.name, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def link_file(source: Path, target: Path) -> bool:
    """Hard-link `source` as `target`; return False where that can't be done but a copy could."""
    try:
        files.disk.link(source, target)
    except OSError as error:
        if error.errno in _CANNOT_LINK:
            return False
        raise
    return True


def seal_file(path: Path) -> None:
    """Make a file, and what another program wrote to it, private to this user and durable."""
    descriptor = open_regular(path)
    try:
        files.disk.make_private(descriptor)
        files.disk.sync(descriptor)
    finally:
        os.close(descriptor)


def copy_file(source: Path, target: Path) -> tuple[int, str]:
    """Copy to a new, durable file; return the size and SHA-256 of what was copied."""
    return copy_open_file(open_regular(source), target)


def copy_open_file(descriptor: int, target: Path) -> tuple[int, str]:
    """The same of a file that is open; closes it."""
    with os.fdopen(descriptor, "rb", 0) as reading:
        return files.write_chunks(target, read_chunks(reading.fileno()))


def read_chunks(descriptor: int) -> Iterator[bytes]:
    """Yield what an open file holds from where it stands on."""
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        yield chunk


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file's contents."""
    with os.fdopen(open_regular(path), "rb", 0) as reading:
        return hashlib.file_digest(reading, "sha256").hexdigest()
