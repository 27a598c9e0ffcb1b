"""One contract, two backends: whatever holds for RocksDB holds for the backend of the simulation."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.state.stored import everything
from twopc.errors import CheckpointCorrupted, CheckpointDeclined
from twopc.state.backend import Family, StateBackend
from twopc.state.changes import WHOLE_FILE_NAME
from twopc.state.memory import MemoryBackend
from twopc.state.rocksdb import RocksDBBackend

Engine = type[RocksDBBackend] | type[MemoryBackend]


@pytest.fixture(params=[RocksDBBackend, MemoryBackend], ids=["rocksdb", "memory"])
def engine(request: pytest.FixtureRequest) -> Engine:
    chosen: Engine = request.param
    return chosen


@pytest.fixture
def backend(engine: Engine, tmp_path: Path) -> Iterator[StateBackend]:
    opened = engine.open_fresh(tmp_path / "db")
    yield opened
    opened.close()


def test_values_come_back_in_the_order_of_the_keys_asked_for(backend: StateBackend) -> None:
    backend.put_many(Family.KEYED, [(b"a", b"1"), (b"b", b"2")])
    assert backend.get_many(Family.KEYED, [b"b", b"missing", b"a", b"b"]) == [b"2", None, b"1", b"2"]


def test_asking_for_nothing_returns_nothing(backend: StateBackend) -> None:
    assert backend.get_many(Family.KEYED, []) == []


def test_what_is_written_may_come_one_by_one(backend: StateBackend) -> None:
    backend.put_many(Family.KEYED, iter([(b"a", b"1"), (b"b", b"2")]))
    backend.put_many(Family.KEYED, iter([(b"b", None), (b"c", b"3")]))
    assert list(backend.scan(Family.KEYED)) == [(b"a", b"1"), (b"c", b"3")]


def test_writing_nothing_changes_nothing(backend: StateBackend) -> None:
    backend.put_many(Family.KEYED, [])
    assert list(backend.scan(Family.KEYED)) == []


def test_families_do_not_mix(backend: StateBackend) -> None:
    for family in Family:
        backend.put_many(family, [(b"k", family.value.encode())])
    for family in Family:
        assert list(backend.scan(family)) == [(b"k", family.value.encode())]


def test_a_value_of_none_deletes(backend: StateBackend) -> None:
    backend.put_many(Family.OPERATOR, [(b"a", b"1"), (b"b", b"2")])
    backend.put_many(Family.OPERATOR, [(b"a", None), (b"never there", None)])
    assert list(backend.scan(Family.OPERATOR)) == [(b"b", b"2")]


def test_an_empty_value_is_not_a_missing_one(backend: StateBackend) -> None:
    backend.put_many(Family.KEYED, [(b"a", b"")])
    assert backend.get_many(Family.KEYED, [b"a", b"b"]) == [b"", None]


def test_the_last_write_to_a_key_in_one_call_wins(backend: StateBackend) -> None:
    backend.put_many(Family.KEYED, [(b"a", b"1"), (b"a", None), (b"a", b"2")])
    assert backend.get_many(Family.KEYED, [b"a"]) == [b"2"]


def test_a_scan_yields_the_prefix_only_in_key_order(backend: StateBackend) -> None:
    keys = [b"b", b"a\xff", b"a", b"a\x00", b"\xff\xff", b"ab"]
    backend.put_many(Family.KEYED, [(key, b"v") for key in keys])
    assert [key for key, _ in backend.scan(Family.KEYED, b"a")] == [b"a", b"a\x00", b"ab", b"a\xff"]
    assert [key for key, _ in backend.scan(Family.KEYED)] == sorted(keys)
    assert [key for key, _ in backend.scan(Family.KEYED, b"\xff")] == [b"\xff\xff"]


@pytest.mark.parametrize(
    ("start", "keys"), [(b"", [b"a", b"a1", b"a3"]), (b"1", [b"a1", b"a3"]), (b"2", [b"a3"]), (b"4", [])]
)
def test_a_scan_may_start_behind_its_prefix(backend: StateBackend, start: bytes, keys: list[bytes]) -> None:
    backend.put_many(Family.KEYED, [(key, b"v") for key in (b"a3", b"b", b"a", b"a1", b"`")])
    assert [key for key, _ in backend.scan(Family.KEYED, b"a", start)] == keys


def test_the_first_item_from_a_key_on_is_that_key_or_the_next(backend: StateBackend) -> None:
    backend.put_many(Family.KEYED, [(b"b", b"1"), (b"d", b"2")])
    found = [backend.first_from(Family.KEYED, start) for start in (b"", b"b", b"b\x00", b"d\x00")]
    assert found == [(b"b", b"1"), (b"b", b"1"), (b"d", b"2"), None]
    assert backend.first_from(Family.OPERATOR, b"") is None


@pytest.mark.parametrize(
    ("prefix", "left"),
    [
        (b"a", [b"b", b"\xff", b"\xff\xff"]),
        (b"a\xff", [b"a", b"b", b"\xff", b"\xff\xff"]),
        (b"\xff", [b"a", b"a\xff", b"a\xff\x01", b"b"]),
        (b"", []),
    ],
)
def test_a_prefix_is_deleted_and_nothing_beside_it(backend: StateBackend, prefix: bytes, left: list[bytes]) -> None:
    keys = [b"a", b"a\xff", b"a\xff\x01", b"b", b"\xff", b"\xff\xff"]
    backend.put_many(Family.KEYED, [(key, b"v") for key in keys])
    backend.put_many(Family.OPERATOR, [(key, b"v") for key in keys])
    backend.delete_prefix(Family.KEYED, prefix)
    assert [key for key, _ in backend.scan(Family.KEYED)] == left
    assert [key for key, _ in backend.scan(Family.OPERATOR)] == keys


def test_a_deleted_prefix_can_be_written_again(backend: StateBackend) -> None:
    backend.put_many(Family.KEYED, [(b"a1", b"old"), (b"a2", b"old")])
    backend.delete_prefix(Family.KEYED, b"a")
    backend.put_many(Family.KEYED, [(b"a1", b"new")])
    assert list(backend.scan(Family.KEYED, b"a")) == [(b"a1", b"new")]


def test_the_keys_of_keyed_state_are_counted(backend: StateBackend) -> None:
    backend.put_many(Family.KEYED, [(b"%d" % number, b"v") for number in range(10)])
    backend.put_many(Family.OPERATOR, [(b"a", b"v")])
    assert backend.key_count() == 10


def test_a_snapshot_restores_all_that_was_written_before_it(
    engine: Engine, backend: StateBackend, tmp_path: Path
) -> None:
    items = [(b"%05d" % number, b"v%d" % number) for number in range(5_000)]
    for family in Family:
        backend.put_many(family, [(key, value) for key, value in items])
    backend.snapshot(tmp_path / "snapshot")
    restored = engine.open_restored(tmp_path / "snapshot")
    try:
        for family in Family:
            assert list(restored.scan(family)) == items
    finally:
        restored.close()


def test_a_snapshot_does_not_see_what_is_written_after_it(
    engine: Engine, backend: StateBackend, tmp_path: Path
) -> None:
    backend.put_many(Family.KEYED, [(b"a", b"before")])
    backend.snapshot(tmp_path / "snapshot")
    backend.put_many(Family.KEYED, [(b"a", b"after"), (b"b", b"after")])
    restored = engine.open_restored(tmp_path / "snapshot")
    try:
        assert list(restored.scan(Family.KEYED)) == [(b"a", b"before")]
    finally:
        restored.close()
    assert list(backend.scan(Family.KEYED)) == [(b"a", b"after"), (b"b", b"after")]


def test_what_another_thread_writes_of_a_frozen_state_does_not_see_later_writes(
    engine: Engine, backend: StateBackend, tmp_path: Path
) -> None:
    backend.put_many(Family.KEYED, [(b"a", b"before")])
    frozen = backend.freeze()
    later = threading.Thread(target=backend.put_many, args=(Family.KEYED, [(b"a", b"after")]))
    later.start()
    later.join(0.1)
    assert backend.frozen() == later.is_alive(), "who asks is told whether a write waits"
    assert backend.get_many(Family.POSITIONS, [b"a"]) == [None], "reads go on"
    frozen.write(tmp_path / "snapshot")
    later.join()
    assert not backend.frozen()
    restored = engine.open_restored(tmp_path / "snapshot")
    try:
        assert list(restored.scan(Family.KEYED)) == [(b"a", b"before")]
    finally:
        restored.close()
    assert backend.get_many(Family.KEYED, [b"a"]) == [b"after"]


def test_the_snapshot_of_an_empty_state_restores_an_empty_state(
    engine: Engine, backend: StateBackend, tmp_path: Path
) -> None:
    backend.snapshot(tmp_path / "snapshot")
    restored = engine.open_restored(tmp_path / "snapshot")
    try:
        assert [list(restored.scan(family)) for family in Family] == [[], [], []]
    finally:
        restored.close()


def test_a_snapshot_of_a_restored_state_restores_too(engine: Engine, backend: StateBackend, tmp_path: Path) -> None:
    backend.put_many(Family.KEYED, [(b"a", b"1")])
    backend.snapshot(tmp_path / "first")
    second = engine.open_restored(tmp_path / "first")
    second.put_many(Family.KEYED, [(b"b", b"2")])
    second.snapshot(tmp_path / "second")
    second.close()
    third = engine.open_restored(tmp_path / "second")
    try:
        assert list(third.scan(Family.KEYED)) == [(b"a", b"1"), (b"b", b"2")]
    finally:
        third.close()


def test_a_snapshot_into_a_folder_that_exists_declines_the_checkpoint(backend: StateBackend, tmp_path: Path) -> None:
    (tmp_path / "snapshot").mkdir()
    with pytest.raises(CheckpointDeclined, match="snapshot"):
        backend.snapshot(tmp_path / "snapshot")


def test_a_backend_goes_on_after_a_declined_snapshot(backend: StateBackend, tmp_path: Path) -> None:
    with pytest.raises(CheckpointDeclined):
        backend.snapshot(tmp_path / "no such folder" / "snapshot")
    backend.put_many(Family.KEYED, [(b"a", b"1")])
    backend.snapshot(tmp_path / "snapshot")
    assert backend.get_many(Family.KEYED, [b"a"]) == [b"1"]


def test_a_snapshot_that_is_not_there_is_refused(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(CheckpointCorrupted, match="nothing-here"):
        engine.open_restored(tmp_path / "nothing-here")


def test_a_fresh_state_does_not_open_over_an_older_one(engine: Engine, backend: StateBackend, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="db"):
        engine.open_fresh(tmp_path / "db")


def test_a_closed_state_can_be_opened_again_in_the_same_process(engine: Engine, tmp_path: Path) -> None:
    first = engine.open_fresh(tmp_path / "db")
    first.snapshot(tmp_path / "snapshot")
    first.close()
    for _ in range(2):
        engine.open_restored(tmp_path / "snapshot").close()


def test_a_state_that_tells_all_that_was_written_is_restored_from_that(
    engine: Engine, backend: StateBackend, tmp_path: Path
) -> None:
    backend.put_many(Family.KEYED, [(b"a1", b"1"), (b"a2", b"2"), (b"b", b"3"), (b"c", b"")])
    backend.put_many(Family.POSITIONS, [(b"a1", b"4")])
    backend.put_many(Family.KEYED, [(b"b", None), (b"c", None), (b"c", b""), (b"d", b"5"), (b"d", None)])
    backend.delete_prefix(Family.KEYED, b"a2")
    told = backend.changes()
    assert told is not None
    assert told.is_whole
    assert told.size_bytes == len(b"a11ca14")
    (tmp_path / "told").mkdir()
    (tmp_path / "told" / WHOLE_FILE_NAME).write_bytes(told.encode())
    restored = engine.open_restored(tmp_path / "told")
    try:
        assert everything(restored) == everything(backend)
        assert restored.changes() == told
    finally:
        restored.close()
