"""The work folder of an attempt's subtask, for local state while it runs: one each, which no later attempt reads.

They lie in the temporary folder, under a name that says whose they are: the job's, and that of its checkpoint store.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from twopc.errors import ConfigurationError
from twopc.protocol.ids import AttemptId, SubtaskIndex
from twopc.storage.store import CheckpointStore
from twopc.user_folders import temporary_folder

_SUBTASK = "subtask-"
_MEETINGS = 10


def make_work_folder(store: CheckpointStore, job: str, subtask: SubtaskIndex, attempt: AttemptId) -> Path:
    """Make this attempt's folder, and remove what earlier attempts of this subtask left behind."""
    folder = _root(store, job) / f"{_SUBTASK}{subtask}" / str(attempt)
    shutil.rmtree(folder, ignore_errors=True)
    for _ in range(_MEETINGS):
        # Another attempt that ends just now takes those away that are empty.
        with suppress(FileNotFoundError):
            return _made(folder, attempt)
    return _made(folder, attempt)


def remove_of_more_subtasks(store: CheckpointStore, job: str, parallelism: int, attempt: AttemptId) -> None:
    """Remove what earlier attempts left behind in subtasks that this attempt, with fewer of them, has not."""
    for parent in _root(store, job).glob(f"{_SUBTASK}*"):
        index = parent.name.removeprefix(_SUBTASK)
        if index.isdecimal() and int(index) >= parallelism:
            with suppress(OSError):
                _remove_earlier(parent, attempt)
                parent.rmdir()


def remove_work_folder(folder: Path) -> None:
    """Remove the folder, and those above it that are empty then."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.parent.rmdir()
        folder.parent.parent.rmdir()


def remove_of_attempt(store: CheckpointStore, job: str, attempt: AttemptId) -> None:
    """Remove what an attempt's subtasks left behind on this machine, after they have ended.

    Each removes its own folder, but not if it was killed, and not to the end if it was told to end while it did.
    """
    for parent in _root(store, job).glob(f"{_SUBTASK}*"):
        remove_work_folder(parent / str(attempt))


def work_folders_of(store: CheckpointStore) -> Iterator[Path]:
    """Yield what the jobs of a checkpoint store have here, whichever jobs those are."""
    yield from temporary_folder().glob(f"twopc-*-{_digest(store)}")


def _made(folder: Path, attempt: AttemptId) -> Path:
    parent, root = folder.parent, folder.parent.parent
    for each in (root, parent):
        each.mkdir(parents=True, exist_ok=True, mode=0o700)
    if root.stat().st_uid != os.getuid():
        raise ConfigurationError(f"{root} belongs to another user: set TMPDIR to a folder of your own")
    _remove_earlier(parent, attempt)
    folder.mkdir(mode=0o700)
    return folder


def _remove_earlier(parent: Path, attempt: AttemptId) -> None:
    for leftover in parent.iterdir():
        if leftover.name.isdecimal() and int(leftover.name) < attempt:
            shutil.rmtree(leftover, ignore_errors=True)


def _root(store: CheckpointStore, job: str) -> Path:
    return temporary_folder() / f"twopc-{job}-{_digest(store)}"


def _digest(store: CheckpointStore) -> str:
    return hashlib.sha256(store.identity.encode()).hexdigest()[:12]
