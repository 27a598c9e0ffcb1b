"""A folder for as long as one process needs it, which is deleted even where that process was killed.

Invariants:

- The process that made a folder holds a lock in it for as long as it lives; the kernel lets go of it, however that
  process ends.
- A folder is swept only where that lock can be taken: what has no lock in it is not one of these.
- The lock is held before it has its name, so that nobody sees a new folder that seems to be nobody's.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from twopc.storage.local import LocalStore
from twopc.storage.work_folder import work_folders_of
from twopc.user_folders import temporary_folder

CHECKPOINTS = "checkpoints"
"""The folder of a scratch job's checkpoints: what its workers left elsewhere is deleted with it."""

_LOCK = "owner.lock"


@contextmanager
def scratch_folder(
    kind: str, where: Path | None = None, *, before_sweep: Callable[[Path], None] = lambda _: None
) -> Iterator[Path]:
    """Have a folder `twopc-<kind>-...` of one's own; delete it, and those of the kind whose owners have died.

    `before_sweep` ends what may still run in one of those.
    """
    parent = temporary_folder() if where is None else where
    _sweep(kind, parent, before_sweep)
    folder = Path(tempfile.mkdtemp(prefix=f"twopc-{kind}-", dir=parent))
    lock = os.open(folder / f".{_LOCK}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        # A file system without locks: nothing is swept on it.
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / f".{_LOCK}").rename(folder / _LOCK)
        yield folder
    finally:
        _delete(folder)
        os.close(lock)


def _sweep(kind: str, parent: Path, before_sweep: Callable[[Path], None]) -> None:
    own = re.compile(rf"twopc-{re.escape(kind)}-[a-z0-9_]+")
    for folder in [each for each in parent.iterdir() if own.fullmatch(each.name)]:
        # Another user's, or gone by now, or there is no lock in it.
        with suppress(OSError):
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                before_sweep(folder)
                _delete(folder)
            finally:
                os.close(lock)


def _delete(folder: Path) -> None:
    """Delete the lock last: what a killed sweep leaves can be swept again."""
    for work in work_folders_of(LocalStore(folder / CHECKPOINTS)):
        shutil.rmtree(work, ignore_errors=True)
    with suppress(OSError):
        for each in folder.iterdir():
            if each.name == _LOCK:
                continue
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
