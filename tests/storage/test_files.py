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
