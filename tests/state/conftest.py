"""A subtask with some state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.state.stored import Subtask
from twopc.state.backend import Family
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.local import LocalStore


@pytest.fixture
def subtask(tmp_path: Path) -> Iterator[Subtask]:
    local = tmp_path / "local"
    local.mkdir()
    (tmp_path / "store").mkdir()
    backend = RocksDBBackend.open_fresh(local / "db")
    backend.put_many(Family.KEYED, [(b"%06d" % number, b"value %d" % number) for number in range(3_000)])
    backend.put_many(Family.OPERATOR, [(b"a", b"1")])
    yield Subtask(backend, SnapshotStore(LocalStore(tmp_path / "store")), tmp_path / "store", local)
    backend.close()
