"""Durable files: the only place that knows how bytes are made to survive a crash.

Invariants:
- a name that `create_once` made holds all of its bytes, for good, or it does not exist: never a part of them;
- of two writers of one name, one succeeds and the other gets FileExistsError;
- a folder that is being removed is never seen half-empty under its own name.

A file or folder whose name starts with TEMPORARY or DELETED is nobody's data: what a crash left behind, to be swept.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from pathlib import Path

from twopc.crashpoints import CrashPoint, reached

TEMPORARY = ".tmp-"
DELETED = ".deleted-"


def fsync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create a folder and its parents durably; one that exists is fine."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    fsync_folder(path.parent)


def create_once(path: Path, data: bytes, *, checkpoint: int = 0) -> None:
    """Create a file that does not exist yet, durably; its folder must exist.

    Raises FileExistsError if the name is taken, OSError if storing fails; then the name is not there. `checkpoint` is
    the one whose metadata this is, if it is that.
    """
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    try:
        _write_new(temporary, data, checkpoint)
        _passed(CrashPoint.COORDINATOR_METADATA_UNNAMED, checkpoint)
        os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    try:
        _passed(CrashPoint.COORDINATOR_METADATA_NAMED, checkpoint)
        fsync_folder(path.parent)
    except OSError:
        # Whether the name is durable is unknown now; the caller will act as if it were not there, so it must not be.
        path.unlink(missing_ok=True)
        raise


def _passed(point: CrashPoint, checkpoint: int) -> None:
    if checkpoint:
        reached(point, checkpoint=checkpoint)


def _write_new(path: Path, data: bytes, checkpoint: int) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        _passed(CrashPoint.COORDINATOR_METADATA_UNSYNCED, checkpoint)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_folder(path: Path) -> None:
    """Remove a folder with all that it holds; a crash in the middle leaves only a name to sweep."""
    doomed = path.with_name(f"{DELETED}{uuid.uuid4().hex}")
    try:
        path.rename(doomed)
    except FileNotFoundError:
        return
    fsync_folder(path.parent)
    reached(CrashPoint.COORDINATOR_IN_PRUNE)
    shutil.rmtree(doomed)


def sweep_removed(folder: Path) -> None:
    """Delete what interrupted removals left in this folder."""
    for leftover in folder.glob(f"{DELETED}*"):
        shutil.rmtree(leftover, ignore_errors=True)


def sweep_unfinished(folder: Path) -> None:
    """Delete what interrupted writes left in this folder; only its one writer may do so."""
    for leftover in folder.glob(f"{TEMPORARY}*"):
        with contextlib.suppress(OSError):
            leftover.unlink()
