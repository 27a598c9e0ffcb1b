"""Storing a snapshot: whole, durable, incremental, or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.state.stored import SUBTASK, Subtask, everything
from tests.stored_job import stored_files
from twopc.errors import CheckpointDeclined, ProtocolViolation
from twopc.protocol.facts import StateHandle
from twopc.protocol.ids import CheckpointId
from twopc.state.backend import Family
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.local import LocalStore
from twopc.storage.local_files import digest_of


def ssts(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in folder.glob("*.sst")}


def files(subtask: Subtask, handle: StateHandle) -> dict[str, Path]:
    return stored_files(subtask.root, handle.path)


def stored_ssts(subtask: Subtask, handle: StateHandle) -> dict[str, int]:
    return {name: path.stat().st_ino for name, path in files(subtask, handle).items() if name.endswith(".sst")}


def refuse_links(*_: object, **__: object) -> None:
    raise OSError(errno.EXDEV, "Invalid cross-device link")


def test_what_was_put_is_fetched_and_opens_as_the_same_state(subtask: Subtask, tmp_path: Path) -> None:
    handle = subtask.checkpoint(7)
    SnapshotStore(LocalStore(subtask.root)).fetch(handle, tmp_path / "fetched")
    restored = RocksDBBackend.open_restored(tmp_path / "fetched")
    try:
        assert everything(restored) == everything(subtask.backend)
    finally:
        restored.close()


def test_the_handle_says_where_and_how_much(subtask: Subtask) -> None:
    handle = subtask.checkpoint(7)
    stored = sum(path.stat().st_size for path in files(subtask, handle).values())
    assert (handle.path, handle.size_bytes, handle.key_count) == ("chk-7/subtask-0", stored, 3_000)


def test_only_this_user_can_read_a_snapshot(subtask: Subtask) -> None:
    handle = subtask.checkpoint(7)
    paths = [*files(subtask, handle).values(), subtask.root / f"{handle.path}.json"]
    assert {path.stat().st_mode & 0o777 for path in paths} == {0o600}
    assert {path.parent.stat().st_mode & 0o777 for path in paths} == {0o700}


def test_a_job_folder_that_is_not_there_is_named_with_its_host_and_never_made(subtask: Subtask, tmp_path: Path) -> None:
    subtask.checkpoint(1)
    away = subtask.root.rename(tmp_path / "away")
    with pytest.raises(CheckpointDeclined, match=rf"{socket.gethostname()}:{subtask.root} is not.*--checkpoint-dir"):
        subtask.checkpoint(2)
    assert not subtask.root.exists()
    away.rename(subtask.root)
    subtask.storage.fetch(subtask.checkpoint(3), tmp_path / "fetched")


def test_an_unchanged_sst_is_stored_once_however_many_checkpoints_hold_it(subtask: Subtask) -> None:
    first, second = subtask.checkpoint(1), subtask.checkpoint(2)
    assert stored_ssts(subtask, first)
    assert stored_ssts(subtask, first).items() <= stored_ssts(subtask, second).items()


def test_an_unchanged_sst_is_not_digested_again(subtask: Subtask, monkeypatch: pytest.MonkeyPatch) -> None:
    known = set(stored_ssts(subtask, subtask.checkpoint(1)))
    digested: list[str] = []

    def counting(path: Path) -> str:
        digested.append(path.name)
        return digest_of(path)

    monkeypatch.setattr("twopc.state.snapshot_store.digest_of", counting)
    monkeypatch.setattr("twopc.storage.local.digest_of", counting)
    subtask.backend.put_many(Family.KEYED, [(b"new", b"1")])
    subtask.checkpoint(2)
    assert digested
    assert known.isdisjoint(digested)


def test_files_that_rocksdb_rewrites_are_copied(subtask: Subtask) -> None:
    stored = files(subtask, subtask.checkpoint(1))
    assert {path.stat().st_nlink for name, path in stored.items() if not name.endswith(".sst")} == {1}


def test_a_fetched_state_shares_nothing_but_ssts_with_the_stored_one(subtask: Subtask, tmp_path: Path) -> None:
    handle = subtask.checkpoint(1)
    subtask.storage.fetch(handle, tmp_path / "fetched")
    stored = files(subtask, handle)
    shared = [path.name for path in (tmp_path / "fetched").iterdir() if path.samefile(stored[path.name])]
    assert shared
    assert all(name.endswith(".sst") for name in shared)


def test_across_devices_an_unchanged_sst_is_stored_once_too(subtask: Subtask, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def link_within_the_store(source: Path, target: Path, **options: Any) -> None:
        if not source.is_relative_to(subtask.root):
            refuse_links()
        link(source, target, **options)

    monkeypatch.setattr(os, "link", link_within_the_store)
    first, second = subtask.checkpoint(1), subtask.checkpoint(2)
    assert stored_ssts(subtask, first)
    assert stored_ssts(subtask, first).items() <= stored_ssts(subtask, second).items()
    assert stored_ssts(subtask, first).items().isdisjoint(ssts(subtask.local / "snapshot-1").items())


@pytest.mark.parametrize("pruned", [False, True])
def test_where_nothing_can_be_linked_everything_is_copied(
    subtask: Subtask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pruned: bool
) -> None:
    link = os.link

    def link_names_only(source: Path, target: Path, **options: Any) -> None:
        if target.name.endswith(".sst"):
            refuse_links()
        link(source, target, **options)

    monkeypatch.setattr(os, "link", link_names_only)
    subtask.checkpoint(1)
    if pruned:
        shutil.rmtree(subtask.root / "chk-1")
    handle = subtask.checkpoint(2)
    subtask.storage.fetch(handle, tmp_path / "fetched")
    RocksDBBackend.open_restored(tmp_path / "fetched").close()


def test_a_checkpoint_outlives_the_one_it_was_linked_from(subtask: Subtask, tmp_path: Path) -> None:
    subtask.checkpoint(1)
    handle = subtask.checkpoint(2)
    shutil.rmtree(subtask.root / "chk-1")
    shutil.rmtree(subtask.local / "snapshot-1")
    subtask.storage.fetch(handle, tmp_path / "fetched")
    RocksDBBackend.open_restored(tmp_path / "fetched").close()


def test_a_restored_state_that_runs_on_leaves_the_stored_one_as_it_was(subtask: Subtask, tmp_path: Path) -> None:
    handle = subtask.checkpoint(1)
    stored = {name: path.read_bytes() for name, path in files(subtask, handle).items()}
    subtask.storage.fetch(handle, tmp_path / "fetched")
    restored = RocksDBBackend.open_restored(tmp_path / "fetched")
    for number in range(5):
        restored.put_many(Family.KEYED, [(b"%06d" % key, b"changed %d" % number) for key in range(3_000)])
        restored.snapshot(tmp_path / f"again-{number}")
    restored.close()
    assert {name: path.read_bytes() for name, path in files(subtask, handle).items()} == stored
    subtask.storage.fetch(handle, tmp_path / "fetched again")


def test_one_checkpoint_takes_one_snapshot_of_a_subtask(subtask: Subtask) -> None:
    handle = subtask.checkpoint(1)
    with pytest.raises(ProtocolViolation, match="chk-1"):
        subtask.storage.put(CheckpointId(1), SUBTASK, subtask.local / "snapshot-1", 0)
    assert (subtask.root / f"{handle.path}.json").exists()


def test_a_file_whose_fsync_failed_is_copied_from_then_on(subtask: Subtask, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("twopc.storage.local.seal_file", failing)
        with pytest.raises(CheckpointDeclined):
            subtask.checkpoint(1)
    first_named = min(ssts(subtask.local / "snapshot-1"))
    unsynced = ssts(subtask.local / "snapshot-1")[first_named]
    second, third = (stored_ssts(subtask, subtask.checkpoint(number)) for number in (2, 3))
    assert second[first_named] != unsynced
    assert third[first_named] == second[first_named]
