"""The leaks on disks: work folders, locks that are held, and names in a checkpoint folder that mean nothing."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.leak_audit.findings import Finding, Place, Problem

_LOCKS = Path("/proc/locks")
_ROCKSDB_LOCK = "LOCK"
_UNFINISHED = (".tmp-", ".subtask-")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def findings_in_folders(place: Place) -> Iterator[Finding]:
    """Yield what is left of the workers' folders, and what should not be in the checkpoint folder."""
    for folder in _work_folders(place):
        yield Finding(Problem.LEFTOVER_WORK_FOLDER, str(folder), _listing(folder))
        yield from _held_locks(folder)
    if place.checkpoint_dir is not None:
        yield from _in_checkpoints(place.checkpoint_dir / place.job)
        yield from _unnamed_files(place.checkpoint_dir / place.job)
        yield from _held_locks(place.checkpoint_dir / place.job)
    for folder in place.empty:
        if folder.is_dir() and (names := _listing(folder)):
            yield Finding(Problem.NOT_EMPTY, str(folder), names)


def _work_folders(place: Place) -> list[Path]:
    own = re.compile(rf"twopc-{re.escape(place.job)}-[0-9a-f]{{12}}")
    return sorted(path for path in place.temporary.iterdir() if own.fullmatch(path.name))


def _in_checkpoints(folder: Path) -> Iterator[Finding]:
    for path in _below(folder):
        if path.name.startswith(_UNFINISHED):
            yield Finding(Problem.TEMPORARY_FILE, str(path), "its name is that of something unfinished")
        with suppress(FileNotFoundError):
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode) and mode & _OTHERS:
                yield Finding(Problem.OPEN_TO_OTHERS, str(path), f"its mode is {stat.S_IMODE(mode):o}")


def _unnamed_files(folder: Path) -> Iterator[Finding]:
    """Yield the files of snapshots that no manifest names, of those that are there; the files are looked for first."""
    stored = [path for path in _below(folder / "files") if path.is_file()]
    named: set[str] = set()
    for manifest in folder.glob("chk-*/subtask-*.json"):
        with suppress(FileNotFoundError):
            named.update(name for name, *_ in json.loads(manifest.read_bytes())["body"]["files"])
    for path in stored:
        if str(path.relative_to(folder)) not in named and path.exists():
            yield Finding(Problem.UNNAMED_FILE, str(path), "no manifest names it")


def _held_locks(folder: Path) -> Iterator[Finding]:
    """Yield the RocksDB locks that a process holds, by the kernel's list: trying a lock could release one's own."""
    if not _LOCKS.exists():
        return
    holders = dict(_holders(_LOCKS.read_text()))
    for path in [each for each in _below(folder) if each.name == _ROCKSDB_LOCK]:
        with suppress(FileNotFoundError):
            process = holders.get(path.stat().st_ino)
            if process is not None:
                yield Finding(Problem.HELD_LOCK, str(path), f"by process {process}")


def _below(folder: Path) -> list[Path]:
    """All that is in a folder, at any depth; of what is deleted meanwhile, `rglob` would raise."""
    return sorted(Path(parent, name) for parent, folders, found in os.walk(folder) for name in (*folders, *found))


def _holders(table: str) -> Iterator[tuple[int, int]]:
    """Yield inode and process of each lock: `1: POSIX  ADVISORY  WRITE 4711 08:01:131 0 EOF`."""
    for line in table.splitlines():
        found = re.match(r"\d+: (?:POSIX|FLOCK|OFDLCK) +\w+ +\w+ +(-?\d+) +[0-9a-f]+:[0-9a-f]+:(\d+) ", line)
        if found is not None:
            yield int(found[2]), int(found[1])


def _listing(folder: Path) -> str:
    with suppress(FileNotFoundError):
        return ", ".join(sorted(path.name for path in folder.iterdir()))
    return ""
