"""Durable file primitives: whole or not there, whatever fails in the middle."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from twopc.storage import files


def fail(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_file_is_created_with_all_its_bytes(tmp_path: Path) -> None:
    data = os.urandom(1_000_000)
    files.create_once(tmp_path / "a", data)
    assert (tmp_path / "a").read_bytes() == data
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_name_that_is_taken_is_refused_and_kept(tmp_path: Path) -> None:
    files.create_once(tmp_path / "a", b"first")
    with pytest.raises(FileExistsError):
        files.create_once(tmp_path / "a", b"second")
    assert (tmp_path / "a").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("verb", ["write", "fsync", "link"])
def test_a_failing_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setattr(os, verb, fail)
    with pytest.raises(OSError, match="No space"):
        files.create_once(tmp_path / "a", b"data")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_could_not_be_made_durable_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.disk, "sync_folder", fail)
    with pytest.raises(OSError, match="No space"):
        files.create_once(tmp_path / "a", b"data")
    assert list(tmp_path.iterdir()) == []


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    files.create_once(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_removing_a_folder_that_fails_in_the_middle_leaves_only_a_name_to_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "chk-1"
    folder.mkdir()
    (folder / "data").write_bytes(b"x")
    with monkeypatch.context() as broken:
        broken.setattr(files.disk, "delete", fail)
        with pytest.raises(OSError, match="No space"):
            files.remove_folders([folder])
    assert not folder.exists()
    files.sweep_removed(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_many_folders_lose_their_names_before_the_first_is_emptied_and_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / f"chk-{number}" for number in (1, 2)]
    for each in folders:
        each.mkdir()
        (each / "data").write_bytes(b"x")
    at_sync: list[tuple[int, int]] = []
    monkeypatch.setattr(
        files.disk,
        "sync_folder",
        lambda folder: at_sync.append((len(list(folder.glob("chk-*"))), len(list(folder.rglob("data"))))),
    )
    files.remove_folders([*folders, tmp_path / "chk-3"])
    assert at_sync == [(0, 2)]
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_a_new_folder_is_durable_when_the_file_in_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(files.disk, "sync_folder", synced.append)
    files.create_with_folder(tmp_path / "chk-1" / "a", b"data")
    assert synced == [tmp_path / "chk-1", tmp_path]


def test_a_file_whose_new_folder_can_not_be_made_durable_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.disk, "sync_folder", lambda folder: fail() if folder == tmp_path else None)
    with pytest.raises(OSError, match="No space"):
        files.create_with_folder(tmp_path / "chk-1" / "a", b"data")
    assert list((tmp_path / "chk-1").iterdir()) == []


def test_folders_are_made_with_their_parents(tmp_path: Path) -> None:
    files.make_folder(tmp_path / "a" / "b" / "c")
    files.make_folder(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()


def test_a_folder_that_a_crash_left_unsynced_is_synced_when_it_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    synced: list[Path] = []
    monkeypatch.setattr(files.disk, "sync_folder", synced.append)
    files.make_folder(tmp_path / "a")
    assert synced == [tmp_path]


def test_a_tree_is_removed_without_following_its_links(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_bytes(b"x")
    (tmp_path / "doomed" / "inner").mkdir(parents=True)
    (tmp_path / "doomed" / "inner" / "file").write_bytes(b"x")
    (tmp_path / "doomed" / "link").symlink_to(tmp_path / "kept")
    files.remove_tree(tmp_path / "doomed")
    files.remove_tree(tmp_path / "doomed")
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]
