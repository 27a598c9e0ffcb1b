"""A store in a folder, on a disk that fails or loses power at any step, and with things in it that it never stored."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.storage.disks import (
    FAULTS,
    FailingDisk,
    Fault,
    PowerCut,
    SteppedDisk,
    StoppingDisk,
    count_steps,
    under_files,
)
from twopc.errors import CheckpointCorrupted
from twopc.protocol.layout import TWINS
from twopc.storage import files
from twopc.storage.local import LocalStore

ENTRY = "ledger/000000000001.json"
NEXT = "ledger/000000000002.json"
NAMES = [ENTRY, "chk-7/metadata.json"]


def established(root: Path) -> LocalStore:
    store = LocalStore(root).within("job")
    store.establish()
    return store


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return established(tmp_path)


def fail(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_what_could_not_be_created_is_not_there_and_can_be_created_then(
    tmp_path: Path, name: str, fault: Fault
) -> None:
    with under_files(SteppedDisk()):
        counted = established(tmp_path / "counted")
        steps = count_steps(lambda: counted.create_once(name, b"whole"))
    for at in range(1, steps + 1):
        store = established(tmp_path / f"{at}")
        disk = FailingDisk(fault, at)
        with under_files(disk), suppress(OSError):
            store.create_once(name, b"whole")
        assert store.names() in ([], [name]), at
        if store.names():
            assert store.get(name) == b"whole", at
        store.create_once(name, b"whole")
        assert store.get(name) == b"whole", at


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_an_entry_that_could_not_be_created_is_not_taken_for_lost(tmp_path: Path, fault: Fault) -> None:
    with under_files(SteppedDisk()):
        established(tmp_path / "counted")
        steps = count_steps(lambda: LocalStore(tmp_path / "counted").within("job").create_once(ENTRY, b"whole"))
    for at in range(1, steps + 1):
        established(tmp_path / f"{at}")
        store = LocalStore(tmp_path / f"{at}").within("job")
        with under_files(FailingDisk(fault, at)), suppress(OSError):
            store.create_once(ENTRY, b"whole")
        assert store.lost("ledger/") == {}, at


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lost", ["nothing", "everything", "names", "contents"])
def test_after_a_loss_of_power_a_name_is_whole_or_not_there_and_there_if_creating_it_had_returned(
    tmp_path: Path, name: str, lost: str
) -> None:
    with under_files(SteppedDisk()):
        counted = established(tmp_path / "counted")
        steps = count_steps(lambda: counted.create_once(name, b"whole"))
    for at in range(steps + 1):
        store, trash = established(tmp_path / f"{at}"), tmp_path / f"trash-{at}"
        trash.mkdir()
        disk, returned = StoppingDisk(trash, at), False
        with under_files(disk), suppress(PowerCut):
            store.create_once(name, b"whole")
            returned = True
        disk.lose(disk.chooser(lost, 0))
        assert store.names() in ([], [name]), at
        assert not returned or store.get(name) == b"whole", at
        assert not store.names() or store.get(name) == b"whole", at


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_wherever_the_disk_fails_a_put_raises_or_all_of_it_is_there(tmp_path: Path, fault: Fault) -> None:
    local = tmp_path / "000012.sst"
    local.write_bytes(b"sorted")
    put: Callable[[LocalStore], object] = lambda store: store.put([("files/a", b"bytes"), ("files/b", local)])  # noqa: E731
    with under_files(SteppedDisk()):
        counted = established(tmp_path / "counted")
        steps = count_steps(lambda: put(counted))
    for at in range(1, steps + 1):
        store, disk = established(tmp_path / f"{at}"), FailingDisk(fault, at)
        with under_files(disk):
            try:
                put(store)
            except OSError:
                assert disk.failed
            else:
                assert [store.get(f"files/{name}") for name in "ab"] == [b"bytes", b"sorted"]
        put(store)
        assert [store.get(f"files/{name}") for name in "ab"] == [b"bytes", b"sorted"]


def test_a_file_whose_sync_failed_is_copied_the_next_time_and_not_linked(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = tmp_path / "000012.sst"
    local.write_bytes(b"sorted")
    with monkeypatch.context() as broken:
        broken.setattr(files.disk, "sync", fail)
        with pytest.raises(OSError, match="No space"):
            store.put([("files/a", local)])
    store.put([("files/a", local)])
    assert not (store.root / "files" / "a").samefile(local)


def test_a_file_that_lost_bytes_with_its_failed_sync_is_refused(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = tmp_path / "000012.sst"
    local.write_bytes(b"sorted")
    modified = local.stat().st_mtime_ns
    with monkeypatch.context() as broken:
        broken.setattr(files.disk, "sync", fail)
        with pytest.raises(OSError, match="No space"):
            store.put([("files/a", local)])
    local.write_bytes(b"s\0\0\0\0d")
    os.utime(local, ns=(modified, modified))
    with pytest.raises(OSError, match="the disk returned other bytes"):
        store.put([("files/a", local)])


def test_the_name_of_a_new_folder_is_durable_when_the_file_in_it_is_there(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(files.disk, "sync_folder", synced.append)
    store.create_once("chk-1/a", b"data")
    assert synced == [store.root / "chk-1", store.root]


def test_a_file_whose_new_folder_can_not_be_made_durable_is_taken_back(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.disk, "sync_folder", lambda folder: fail() if folder == store.root else None)
    with pytest.raises(OSError, match="No space"):
        store.create_once("chk-1/a", b"data")
    assert store.names() == []


def test_nothing_is_stored_where_the_folder_is_not_there(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "not-mounted").within("job")
    with pytest.raises(FileNotFoundError):
        store.create_once("chk-1/subtask-0.json", b"manifest")
    with pytest.raises(FileNotFoundError):
        store.put([("files/a", b"data")])
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_whose_names_are_deleted_leaves_no_folder_and_nothing_half_done(store: LocalStore) -> None:
    store.create_once("chk-1/metadata.json", b"fact")
    (store.root / "chk-1" / files.TEMPORARY).write_bytes(b"half")
    store.delete(["chk-1/metadata.json"])
    assert not (store.root / "chk-1").exists()


def test_a_lost_entry_is_known_by_its_second_name_and_a_deleted_one_is_not(store: LocalStore) -> None:
    store.create_once(ENTRY, b"first")
    store.create_once(NEXT, b"second")
    store.delete([ENTRY])
    (store.root / NEXT).unlink()
    assert dict(store.lost("ledger/")) == {NEXT: f"job/{TWINS}/000000000002.json"}


def test_sweeping_gives_entries_their_second_names_again_and_forgets_those_of_deleted_ones(store: LocalStore) -> None:
    store.create_once(ENTRY, b"first")
    store.create_once(NEXT, b"second")
    (store.root / TWINS / "000000000002.json").unlink()
    (store.root / ENTRY).unlink()
    store.sweep("ledger/")
    assert [path.name for path in (store.root / TWINS).iterdir()] == ["000000000002.json"]


@pytest.mark.parametrize("way", ["file", "folder"])
def test_no_symbolic_link_is_followed(store: LocalStore, tmp_path: Path, way: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a").write_bytes(b"of another")
    if way == "folder":
        (store.root / "files").symlink_to(tmp_path / "elsewhere")
    else:
        (store.root / "files").mkdir()
        (store.root / "files" / "a").symlink_to(tmp_path / "elsewhere" / "a")
    with pytest.raises(CheckpointCorrupted):
        store.get("files/a")
    with pytest.raises(CheckpointCorrupted):
        store.bring("files/a", tmp_path / "brought")
    assert not (tmp_path / "brought").exists()


def test_what_is_stored_is_private_to_its_user(store: LocalStore, tmp_path: Path) -> None:
    local = tmp_path / "000012.sst"
    local.write_bytes(b"sorted")
    local.chmod(0o644)
    store.put([("files/a", local), ("files/b", b"bytes")])
    store.create_once(ENTRY, b"fact")
    for name in ("files/a", "files/b", ENTRY):
        assert (store.root / name).stat().st_mode & 0o777 == 0o600
