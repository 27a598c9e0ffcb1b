"""Reads stored files safely: regular files only, reached through no symbolic link, and none of absurd size."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from twopc.errors import CheckpointCorrupted

FACT_BYTES_MAX = 256 * 1024 * 1024
"""More than any stored fact has: a file beyond that is not read at all."""

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_WHAT_WAS_STORED = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EINVAL, errno.EFBIG, errno.EIO})


def open_regular(path: Path) -> int:
    """Open a regular file for reading; raise OSError if it is anything else."""
    return _checked(os.open(path, _FILE), str(path))


def read_fact(root: Path, name: str, shown: str) -> bytes:
    """Return the contents of the file that is at `name` below `root`; messages call it `shown`.

    Raises CheckpointCorrupted if there is something that was never stored so, or that the disk can't return;
    FileNotFoundError if there is nothing.
    """
    try:
        with open_below(root, name, shown) as file:
            return _read_within_bounds(file, shown)
    except OSError as error:
        if error.errno in _NOT_WHAT_WAS_STORED:
            raise CheckpointCorrupted(f"{shown} can't be read as what was stored: {error.strerror}") from error
        raise


@contextlib.contextmanager
def open_stored(root: Path, name: str, shown: str) -> Iterator[int]:
    """As `open_below`; raise CheckpointCorrupted if there is something that was never stored so."""
    with contextlib.ExitStack() as until:
        try:
            descriptor = until.enter_context(open_below(root, name, shown))
        except OSError as error:
            if error.errno in _NOT_WHAT_WAS_STORED:
                raise CheckpointCorrupted(f"{shown} can't be read as what was stored: {error.strerror}") from error
            raise
        yield descriptor


@contextlib.contextmanager
def open_below(root: Path, name: str, shown: str) -> Iterator[int]:
    """Open the regular file that is at `name` below `root`, through no symbolic link; raise OSError if it is not one.

    `name` must have no part that leads upwards.
    """
    *folders, last = PurePosixPath(name).parts
    with contextlib.ExitStack() as until:
        folder = _opened(until, os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        for each in folders:
            folder = _opened(until, os.open(each, _FOLDER, dir_fd=folder))
        yield _opened(until, _checked(os.open(last, _FILE, dir_fd=folder), shown))


def _opened(until: contextlib.ExitStack, descriptor: int) -> int:
    until.callback(os.close, descriptor)
    return descriptor


def _checked(descriptor: int, shown: str) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", shown)
    return descriptor


def _read_within_bounds(descriptor: int, shown: str) -> bytes:
    size = os.fstat(descriptor).st_size
    if size > FACT_BYTES_MAX:
        raise OSError(errno.EFBIG, f"it has {size} bytes, more than any such file", shown)
    parts = []
    while part := os.read(descriptor, size + 1):
        parts.append(part)
    return b"".join(parts)
