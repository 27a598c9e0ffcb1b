"""Durable files: the only place that knows how bytes are made to survive a crash.

Invariants:
- a name that `create_once` made holds all of its bytes, for good, or it does not exist: never a part of them;
- of two writers of one name, one succeeds and the other gets FileExistsError;
- a folder exists only if the name of the folder that it is in is durable;
- what could not be synced is deleted and written anew, never synced again.

A file or folder whose name starts with TEMPORARY is nobody's data: what a crash left behind, to be swept.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from twopc.faults.points import CrashPoint, reached
from twopc.storage.disk import Disk

TEMPORARY = ".tmp-"

disk = Disk()


def make_folder(path: Path) -> None:
    """Create a folder and its parents durably; one that exists is made durable too, as a crash may have left it."""
    if path.is_dir():
        # Whoever may not open the folder above did not make this one.
        with contextlib.suppress(PermissionError):
            disk.sync_folder(path.parent)
        return
    make_folder(path.parent)
    make_inner_folder(path)


def make_inner_folder(path: Path) -> None:
    """Create a folder durably in one that is there, and is durable; one that exists is made durable too."""
    with contextlib.suppress(FileExistsError):
        disk.make_folder(path)
    disk.sync_folder(path.parent)


def create_once(path: Path, data: bytes, *, checkpoint: int = 0) -> None:
    """Create a file that does not exist yet, durably; its folder must exist.

    Raises FileExistsError if the name is taken, OSError if storing fails; then the name is not there. `checkpoint` is
    the one whose metadata this is, if it is that.
    """
    temporary = path.with_name(f"{TEMPORARY}{secrets.token_hex(16)}")
    try:
        write_new(temporary, data, checkpoint=checkpoint)
        _passed(CrashPoint.COORDINATOR_METADATA_UNNAMED, checkpoint)
        disk.link(temporary, path)
    finally:
        discard_file(temporary)
    _passed(CrashPoint.COORDINATOR_METADATA_NAMED, checkpoint)
    sync_or_take_back(path.parent, path)


def sync_or_take_back(folder: Path, path: Path | None) -> None:
    """Make the names in a folder durable, that of a new file, or of a folder that it is in, among them."""
    try:
        disk.sync_folder(folder)
    except OSError:
        # Whether the name is durable is unknown now; the caller will act as if it were not there, so it must not be.
        if path is not None:
            discard_file(path)
        raise


def link_again(path: Path, twin: Path) -> None:
    """Give a file a second name, as far as that is possible now."""
    with contextlib.suppress(OSError):
        disk.link(path, twin)


def _passed(point: CrashPoint, checkpoint: int) -> None:
    if checkpoint:
        reached(point, checkpoint=checkpoint)


def write_new(path: Path, data: bytes, *, checkpoint: int = 0) -> None:
    """Write a new, durable file, private to this user."""
    descriptor = disk.create(path)
    try:
        write_whole(descriptor, data)
        _passed(CrashPoint.COORDINATOR_METADATA_UNSYNCED, checkpoint)
        disk.sync(descriptor)
    finally:
        os.close(descriptor)


def write_chunks(path: Path, chunks: Iterable[bytes]) -> tuple[int, str]:
    """Write a stream to a new, durable file, private to this user; return its size and SHA-256."""
    size, digest = 0, hashlib.sha256()
    descriptor = disk.create(path)
    try:
        for chunk in chunks:
            digest.update(chunk)
            write_whole(descriptor, chunk)
            size += len(chunk)
        disk.sync(descriptor)
    finally:
        os.close(descriptor)
    return size, digest.hexdigest()


def write_whole(descriptor: int, data: bytes) -> None:
    """Write all of the data, in as many calls as that takes."""
    view = memoryview(data)
    while view:
        view = view[disk.write(descriptor, view) :]


def remove_tree(path: Path) -> None:
    """Remove a folder of nobody's data, following no link; one that is gone is fine."""
    try:
        with os.scandir(path) as entries:
            found = [(Path(entry.path), entry.is_dir(follow_symlinks=False)) for entry in entries]
        for inner, is_folder in found:
            if is_folder:
                remove_tree(inner)
            else:
                disk.delete(inner)
        disk.delete_folder(path)
    except FileNotFoundError:
        return


def delete(path: Path) -> None:
    """Delete one file; one that is gone already is fine."""
    with contextlib.suppress(FileNotFoundError):
        disk.delete(path)


def discard(path: Path) -> None:
    """Remove what a failed write left, as far as that is possible now: it is swept later otherwise."""
    with contextlib.suppress(OSError):
        remove_tree(path)


def discard_file(path: Path) -> None:
    """The same of one file."""
    with contextlib.suppress(OSError):
        disk.delete(path)


def sweep_unfinished(folder: Path) -> None:
    """Delete what interrupted writes left in this folder; only its one writer may do so."""
    for leftover in folder.glob(f"{TEMPORARY}*"):
        discard_file(leftover)
