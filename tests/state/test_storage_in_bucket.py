"""Snapshots in a bucket: several files at once, only the new ones, and verified when they come back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.state.stored import SUBTASK, Subtask, everything
from tests.storage.memory_bucket import MemoryBucket
from twopc.errors import CheckpointCorrupted, ProtocolViolation, Unavailable
from twopc.protocol.ids import CheckpointId
from twopc.state.backend import Family
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.object_store import ObjectStore


class WatchedBucket(MemoryBucket):
    """Notes what is put; what was opened can't be read to its end where `breaks` says so."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: list[str] = []
        self.breaks = ""

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        super().put(name, chunks)
        self.stored.append(name)

    def open(self, name: str) -> tuple[int, Iterator[bytes]]:
        if self.breaks and name.endswith(self.breaks):
            raise OSError(5, "simulated: no answer")
        return super().open(name)


@pytest.fixture
def bucket() -> WatchedBucket:
    return WatchedBucket()


@pytest.fixture
def in_bucket(subtask: Subtask, bucket: WatchedBucket) -> Subtask:
    """The subtask, with several files to store."""
    store = ObjectStore(bucket, "checkpoints/").within("job")
    for number in range(6):
        subtask.backend.put_many(Family.KEYED, [(b"%d-%d" % (number, key), b"v") for key in range(100)])
        subtask.backend.snapshot(subtask.local / f"earlier-{number}")
    return Subtask(subtask.backend, SnapshotStore(store), subtask.root, subtask.local)


def test_what_was_put_is_fetched_and_opens_as_the_same_state(
    in_bucket: Subtask, bucket: WatchedBucket, tmp_path: Path
) -> None:
    handle = in_bucket.checkpoint(7)
    assert len(bucket.stored) > ObjectStore.at_once
    SnapshotStore(ObjectStore(bucket, "checkpoints/job/")).fetch(handle, tmp_path / "fetched")
    restored = RocksDBBackend.open_restored(tmp_path / "fetched")
    try:
        assert everything(restored) == everything(in_bucket.backend)
    finally:
        restored.close()


def test_the_next_snapshot_puts_no_file_again_that_never_changes(in_bucket: Subtask, bucket: WatchedBucket) -> None:
    in_bucket.checkpoint(7)
    first = len(bucket.stored)
    in_bucket.backend.put_many(Family.KEYED, [(b"new", b"v")])
    in_bucket.checkpoint(8)
    files = [name.rpartition("-")[2] for name in bucket.stored if name.endswith(".sst")]
    assert len(set(files)) == len(files)
    assert len(bucket.stored) - first < first


def test_a_damaged_file_is_named_and_nothing_of_the_snapshot_stays_here(
    in_bucket: Subtask, bucket: WatchedBucket, tmp_path: Path
) -> None:
    handle = in_bucket.checkpoint(7)
    damaged = next(name for name in bucket.stored if name.endswith(".sst"))
    bucket.put(damaged, [b"?" + bucket.get(damaged)[1:]])
    with pytest.raises(CheckpointCorrupted, match=rf"s3://memory/{damaged} is damaged: its SHA-256"):
        in_bucket.storage.fetch(handle, tmp_path / "fetched")
    assert not (tmp_path / "fetched").exists()


def test_a_bucket_that_gives_no_answer_now_is_tried_again_by_the_next_attempt(
    in_bucket: Subtask, bucket: WatchedBucket, tmp_path: Path
) -> None:
    handle = in_bucket.checkpoint(7)
    bucket.breaks = ".sst"
    with pytest.raises(Unavailable, match="simulated: no answer"):
        in_bucket.storage.fetch(handle, tmp_path / "fetched")
    assert not (tmp_path / "fetched").exists()
    bucket.breaks = ""
    SnapshotStore(ObjectStore(bucket, "checkpoints/job/")).fetch(handle, tmp_path / "fetched")


def test_a_snapshot_id_that_is_taken_is_refused(in_bucket: Subtask, bucket: WatchedBucket) -> None:
    in_bucket.checkpoint(7)
    other = SnapshotStore(ObjectStore(bucket, "checkpoints/job/"))
    folder = in_bucket.local / "again"
    in_bucket.backend.snapshot(folder)
    with pytest.raises(ProtocolViolation, match=r"chk-7/subtask-0\.json is there already"):
        other.put(CheckpointId(7), SUBTASK, folder, 0)
