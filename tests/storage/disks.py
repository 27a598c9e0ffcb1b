"""Disks that fail at a chosen step, and disks that lose power there, put under `twopc.storage.files`."""

from __future__ import annotations

import errno
import os
import shutil
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partialmethod
from pathlib import Path
from typing import Any

from twopc.storage import files
from twopc.storage.disk import Disk

CALLS = (
    "create", "write", "sync", "sync_folder", "make_private", "link", "make_folder", "delete", "delete_folder"
)  # fmt: skip
NEED_ROOM = frozenset({"create", "write", "sync", "link", "make_folder"})


class SteppedDisk(Disk):
    """A disk that is asked before each step; `steps` says what was done so far. It never really syncs."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def _step(self, call: str, *arguments: Any) -> Any:
        self.steps.append(call)
        self.before(call, *arguments)
        return None if call in ("sync", "sync_folder") else getattr(Disk, call)(self, *arguments)

    def before(self, call: str, *arguments: Any) -> None:
        """May raise."""


for _call in CALLS:
    setattr(SteppedDisk, _call, partialmethod(SteppedDisk._step, _call))


@dataclass(frozen=True)
class Fault:
    """The fault of a disk: with which error, for how long, and whether a write gets half of its bytes down first."""

    name: str
    number: int
    lasting: bool = False
    calls: frozenset[str] = frozenset(CALLS)
    half: bool = False


FAULTS = (
    Fault("full", errno.ENOSPC, calls=NEED_ROOM),
    Fault("full-for-long", errno.ENOSPC, lasting=True, calls=NEED_ROOM),
    Fault("full-in-the-middle-of-a-write", errno.ENOSPC, calls=frozenset({"write"}), half=True),
    Fault("broken", errno.EIO),
    Fault("broken-for-long", errno.EIO, lasting=True),
)


class FailingDisk(SteppedDisk):
    """Fails at the step with this number, counted from 1, if the fault concerns that call; from then on if it lasts."""

    def __init__(self, fault: Fault, at: int) -> None:
        super().__init__()
        self._fault = fault
        self._at = at
        self.failed = 0

    def before(self, call: str, *arguments: Any) -> None:
        now = len(self.steps)
        due = now >= self._at if self._fault.lasting else now == self._at
        if due and call in self._fault.calls:
            self.failed += 1
            if self._fault.half:
                descriptor, data = arguments
                os.write(descriptor, data[: len(data) // 2])
            raise OSError(self._fault.number, os.strerror(self._fault.number))


class PowerCut(BaseException):
    """The process ends where it stands: no handler may tidy up."""


@dataclass
class _Unsynced:
    """One change that a loss of power may undo."""

    call: str
    path: Path
    undo: Callable[[Path], None]


class _Contents:
    """The contents of a file, whatever its name is by now; its descriptor is closed once they are safe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def lose(self, _: Path) -> None:
        os.ftruncate(self._descriptor, 0)


class StoppingDisk(SteppedDisk):
    """Ends before the step with this number, and knows what a loss of power may take then.

    A name is safe once its folder was synced after it; contents are safe once the file was. All else may be lost, each
    change for itself.
    """

    def __init__(self, trash: Path, at: int) -> None:
        super().__init__()
        self._trash = trash
        self._at = at
        self._unsynced: list[_Unsynced] = []

    def unsynced_file(self, path: Path) -> None:
        """Say that another program wrote this file, and never synced it."""
        self._note("write", path, _Contents(os.open(path, os.O_RDWR)).lose)

    def before(self, call: str, *arguments: Any) -> None:
        if len(self.steps) >= self._at:
            raise PowerCut
        getattr(self, f"_before_{call}", lambda *_: None)(*arguments)

    def lose(self, what: Callable[[int], bool]) -> None:
        """Undo those of the changes that were not synced that are chosen, by number; the newest first."""
        for number, change in reversed(list(enumerate(self._unsynced))):
            if what(number):
                change.undo(change.path)

    def count_unsynced(self) -> int:
        return len(self._unsynced)

    def chooser(self, lost: str, chosen: int) -> Callable[[int], bool]:
        """Which of the unsynced changes are lost: by a word, and where that says so, by number."""
        choices: dict[str, Callable[[int], bool]] = {
            "nothing": lambda number: False,
            "everything": lambda number: True,
            "names": lambda number: not self.is_contents(number),
            "contents": self.is_contents,
            "one": lambda number: number == chosen,
            "all but one": lambda number: number != chosen,
        }
        return choices[lost]

    def is_contents(self, number: int) -> bool:
        """Whether the unsynced change with this number is of what a file holds, not of a name."""
        return self._unsynced[number].call == "write"

    def _note(self, call: str, path: Path, undo: Callable[[Path], None]) -> None:
        self._unsynced.append(_Unsynced(call, path, undo))

    def _before_create(self, path: Path) -> None:
        self._note("create", path, lambda now: now.unlink(missing_ok=True))

    def _before_write(self, descriptor: int, data: memoryview) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        self._note("write", path, _Contents(os.dup(descriptor)).lose)

    def _before_sync(self, descriptor: int) -> None:
        synced = os.fstat(descriptor).st_ino
        self._unsynced = [
            change
            for change in self._unsynced
            if change.call != "write" or not change.path.exists() or change.path.stat().st_ino != synced
        ]

    def _before_link(self, source: Path, target: Path) -> None:
        if target.exists():
            return
        self._note("link", target, lambda now: now.unlink(missing_ok=True))

    def _before_make_folder(self, path: Path) -> None:
        if not path.exists():
            self._note("make_folder", path, lambda now: shutil.rmtree(now, ignore_errors=True))

    def _before_delete(self, path: Path) -> None:
        if not path.exists():
            return
        kept = self._trash / f"{len(self.steps)}"
        os.link(path, kept)

        def undo(now: Path) -> None:
            with suppress(FileNotFoundError, FileExistsError):
                os.link(kept, now)

        self._note("delete", path, undo)

    def _before_delete_folder(self, path: Path) -> None:
        def undo(now: Path) -> None:
            with suppress(FileNotFoundError):
                now.mkdir(exist_ok=True)

        self._note("delete_folder", path, undo)

    def _before_sync_folder(self, path: Path) -> None:
        self._unsynced = [change for change in self._unsynced if change.call == "write" or change.path.parent != path]


@contextmanager
def under_files(disk: Disk) -> Iterator[None]:
    """Let this be the disk that `twopc.storage.files` works on."""
    kept, files.disk = files.disk, disk
    try:
        yield
    finally:
        files.disk = kept


def count_steps(action: Callable[[], object]) -> int:
    """How many steps the disk makes in an action in which nothing fails."""
    disk = SteppedDisk()
    with under_files(disk):
        action()
    return len(disk.steps)
