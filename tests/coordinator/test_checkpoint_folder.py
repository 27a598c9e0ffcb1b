"""A checkpoint folder in which nothing can be kept is refused at the start, by name."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from coordinator.server import CoordinatorServer
from twopc.errors import ConfigurationError
from twopc.storage.local import LocalStore
from twopc.storage.open import open_store


def test_a_folder_that_is_not_there_yet_is_made_and_nothing_is_left_in_it(tmp_path: Path) -> None:
    open_store(tmp_path / "new" / "folder").prepare()
    assert list((tmp_path / "new" / "folder").iterdir()) == []


@pytest.mark.parametrize("below", ["", "x"])
def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=r"can't be kept in .*/file.*--checkpoint-dir"):
        CoordinatorServer(LocalStore(tmp_path / "file" / below))


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_folder_that_can_only_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setattr("twopc.storage.local.tempfile.TemporaryFile", raising(code))
    with pytest.raises(ConfigurationError, match="can be written to"):
        open_store(tmp_path).prepare()


def test_a_full_disk_is_no_reason_not_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twopc.storage.local.tempfile.TemporaryFile", raising(errno.ENOSPC))
    open_store(tmp_path).prepare()


def raising(code: int) -> object:
    def fail(**_: object) -> None:
        raise OSError(code, "as arranged")

    return fail


def test_a_url_makes_no_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=r"can't be kept in 'ftp:/bucket'.*file:, s3:"):
        open_store(Path("ftp://bucket"))
    open_store(Path("s3://bucket"))
    assert list(tmp_path.iterdir()) == []
