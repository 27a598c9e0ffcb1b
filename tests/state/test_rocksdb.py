"""What RocksDB does not notice by itself."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from rocksdict import Options, Rdict

from twopc.errors import CheckpointCorrupted
from twopc.state import rocksdb_options
from twopc.state.backend import Family
from twopc.state.rocksdb import RocksDBBackend

KEYS = 20_000


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    backend = RocksDBBackend.open_fresh(tmp_path / "db")
    backend.put_many(Family.KEYED, [(b"%08d" % number, b"value %d" % number) for number in range(KEYS)])
    backend.snapshot(tmp_path / "snapshot")
    backend.close()
    return tmp_path / "snapshot"


def largest_sst(folder: Path) -> Path:
    return max(folder.glob("*.sst"), key=lambda path: path.stat().st_size)


def flip_bit(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def test_a_manifest_without_its_tail_is_not_an_empty_state(snapshot: Path) -> None:
    (manifest,) = snapshot.glob("MANIFEST-*")
    manifest.write_bytes(manifest.read_bytes()[:-20])
    with pytest.raises(CheckpointCorrupted, match="snapshot"):
        RocksDBBackend.open_restored(snapshot)


def test_a_database_that_no_snapshot_made_is_refused(tmp_path: Path) -> None:
    RocksDBBackend.open_fresh(tmp_path / "db").close()
    with pytest.raises(CheckpointCorrupted, match="mark"):
        RocksDBBackend.open_restored(tmp_path / "db")


def test_a_snapshot_that_is_opened_to_look_at_can_be_read_and_not_written(snapshot: Path) -> None:
    tables = {path.name: path.read_bytes() for path in snapshot.glob("*.sst")}
    backend = RocksDBBackend.open_read_only(snapshot)
    try:
        assert sum(1 for _ in backend.scan(Family.KEYED)) == KEYS
        with pytest.raises(OSError, match="can't write"):
            backend.put_many(Family.KEYED, [(b"more", b"")])
    finally:
        backend.close()
    assert {path.name: path.read_bytes() for path in snapshot.glob("*.sst")} == tables


@pytest.mark.parametrize("opened", [RocksDBBackend.open_restored, RocksDBBackend.open_read_only])
def test_a_snapshot_that_says_that_its_manifest_is_elsewhere_is_refused(
    snapshot: Path, tmp_path: Path, opened: Callable[[Path], RocksDBBackend]
) -> None:
    shutil.copytree(snapshot, tmp_path / "elsewhere")
    (manifest,) = snapshot.glob("MANIFEST-*")
    (snapshot / "CURRENT").write_text(f"../elsewhere/{manifest.name}\n")
    with pytest.raises(CheckpointCorrupted, match="refuses to open"):
        opened(snapshot)


@pytest.mark.parametrize("opened", [RocksDBBackend.open_restored, RocksDBBackend.open_read_only])
def test_a_manifest_that_is_empty_is_refused_however_it_is_opened(
    snapshot: Path, opened: Callable[[Path], RocksDBBackend]
) -> None:
    (manifest,) = snapshot.glob("MANIFEST-*")
    manifest.write_bytes(b"")
    with pytest.raises(CheckpointCorrupted, match="snapshot"):
        opened(snapshot)


def test_a_scan_that_meets_a_damaged_block_raises_instead_of_ending(snapshot: Path) -> None:
    flip_bit(largest := largest_sst(snapshot), largest.stat().st_size // 2)
    backend = RocksDBBackend.open_restored(snapshot)
    try:
        with pytest.raises(CheckpointCorrupted, match="snapshot"):
            list(backend.scan(Family.KEYED))
    finally:
        backend.close()


def test_a_read_that_meets_a_damaged_block_raises_instead_of_finding_nothing(snapshot: Path) -> None:
    flip_bit(largest := largest_sst(snapshot), largest.stat().st_size // 2)
    backend = RocksDBBackend.open_restored(snapshot)
    try:
        with pytest.raises(CheckpointCorrupted, match="snapshot"):
            backend.get_many(Family.KEYED, [b"%08d" % number for number in range(KEYS)])
    finally:
        backend.close()


def test_a_planted_pickle_is_bytes_and_never_runs(tmp_path: Path) -> None:
    trace = tmp_path / "executed"
    payload = f"cos\nsystem\n(S'touch {trace}'\ntR.".encode()
    pickle.loads(payload)
    assert trace.exists(), "the payload must be able to run, or this test shows nothing"
    trace.unlink()
    backend = RocksDBBackend.open_fresh(tmp_path / "db")
    planted = [
        (key, marker + payload) for key, marker in ((b"plain", b""), (b"tagged", b"\x05"), (b"tagged too", b"\x06"))
    ]
    backend.put_many(Family.KEYED, [(key, value) for key, value in planted])
    backend.snapshot(tmp_path / "snapshot")
    backend.close()
    restored = RocksDBBackend.open_restored(tmp_path / "snapshot")
    try:
        assert sorted(restored.scan(Family.KEYED)) == sorted(planted)
        assert restored.get_many(Family.KEYED, [key for key, _ in planted]) == [value for _, value in planted]
    finally:
        restored.close()
    assert not trace.exists()


def test_a_database_written_in_the_mode_that_unpickles_is_refused(tmp_path: Path) -> None:
    foreign = Rdict(str(tmp_path / "db"), options=Options(raw_mode=False))
    foreign["key"] = {"a": "pickle"}
    foreign.close()
    with pytest.raises(CheckpointCorrupted):
        RocksDBBackend.open_restored(tmp_path / "db")


def test_a_state_whose_folder_a_later_attempt_has_deleted_closes_without_an_error(tmp_path: Path) -> None:
    backend = RocksDBBackend.open_fresh(tmp_path / "db")
    backend.put_many(Family.KEYED, [(b"key", b"value")])
    shutil.rmtree(tmp_path / "db")
    backend.close()


def filters(folder: Path) -> set[str]:
    """Return what the options say of filters of memtables, of all families."""
    newest = max(folder.glob("OPTIONS-*"), key=lambda path: path.name)
    return {line.strip() for line in newest.read_text().splitlines() if "memtable_prefix_bloom_size_ratio" in line}


def test_writes_feed_no_filter_before_keys_are_asked_for(tmp_path: Path) -> None:
    backend = RocksDBBackend.open_fresh(tmp_path / "db")
    keys = [b"%08d" % number for number in range(rocksdb_options.ASKED_BEFORE_FILTER)]
    backend.put_many(Family.KEYED, [(key, b"value") for key in keys])
    backend.get_many(Family.KEYED, keys[1:])
    before = filters(tmp_path / "db")
    assert backend.get_many(Family.KEYED, keys[:1]) == [b"value"]
    after = filters(tmp_path / "db")
    backend.close()
    assert before == {"memtable_prefix_bloom_size_ratio=0.000000"}
    assert after == before | {"memtable_prefix_bloom_size_ratio=0.100000"}


def test_keys_of_a_state_that_is_opened_to_look_at_are_asked_for_without_a_filter(snapshot: Path) -> None:
    keys = [b"%08d" % number for number in range(KEYS)]
    backend = RocksDBBackend.open_read_only(snapshot)
    try:
        assert backend.get_many(Family.KEYED, keys) == [b"value %d" % number for number in range(KEYS)]
    finally:
        backend.close()


def test_what_is_written_one_by_one_is_among_the_changes(tmp_path: Path) -> None:
    backend = RocksDBBackend.open_fresh(tmp_path / "db")
    backend.put_many(Family.KEYED, iter([(b"a", b"1"), (b"b", b"2")]))
    backend.snapshot(tmp_path / "snapshot")
    backend.put_many(Family.KEYED, iter([(b"b", None), (b"c", b"3")]))
    changes = backend.changes()
    backend.close()
    assert changes is not None
    assert changes.families[Family.KEYED] == {b"b": None, b"c": b"3"}
