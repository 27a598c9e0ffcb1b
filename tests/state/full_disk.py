"""A subtask on a disk that is full for real: run as a program, with a folder on a small file system, or on a limit.

The subtask goes on with its work while the disk is full, and stores its next snapshot when there is room again. Its own
folder is on another disk.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.state.stored import SUBTASK
from twopc.errors import CheckpointDeclined
from twopc.protocol.ids import CheckpointId
from twopc.state.backend import Family
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.local import LocalStore


def main(store: Path, how: str) -> None:
    """Fill the disk, be declined, make room, be stored; raise where anything else happens."""
    with tempfile.TemporaryDirectory() as work:
        backend = RocksDBBackend.open_fresh(Path(work) / "db")
        store.mkdir(exist_ok=True)
        storage = SnapshotStore(LocalStore(store))
        for number in (1, 2, 3):
            items = [(os.urandom(16), os.urandom(100)) for _ in range(2_000)]
            backend.put_many(Family.KEYED, [(key, value) for key, value in items])
            local = Path(work) / f"snapshot-{number}"
            backend.snapshot(local)
            if number == 2:
                decline(storage, local, store, how)
                continue
            handle = storage.put(CheckpointId(number), SUBTASK, local, 0)
            storage.fetch(handle, Path(work) / f"fetched-{number}")
            restored = RocksDBBackend.open_restored(Path(work) / f"fetched-{number}")
            assert len(list(restored.scan(Family.KEYED))) == number * 2_000
            restored.close()
        backend.close()


def decline(storage: SnapshotStore, local: Path, store: Path, how: str) -> None:
    undo = fill(store) if how == "fill" else limit()
    try:
        with pytest.raises(CheckpointDeclined, match="chk-2/subtask-0"):
            storage.put(CheckpointId(2), SUBTASK, local, 0)
    finally:
        undo()
    assert list(store.glob("chk-2/*")) == [], "something half-written was left"
    assert list(store.glob("chk-2/.*")) == [], "something half-written was left"


def fill(store: Path) -> Callable[[], object]:
    """Leave no room on the file system; return what makes room again."""
    ballast = store.parent / "ballast"
    with ballast.open("wb", 0) as writing, suppress(OSError):
        while True:
            writing.write(b"\0" * 4_096)
    return ballast.unlink


def limit() -> Callable[[], object]:
    """Let no file of this process grow beyond a few bytes; return what lets them again."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, before[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
