"""The folders of whoever runs this, a user without a home too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from twopc.errors import ConfigurationError
from twopc.user_folders import (
    CACHE_VARIABLE,
    STATE_VARIABLE,
    cache_folder,
    home_of_a_nameless_user,
    made_cache_folder,
    state_folder,
    temporary_folder,
)


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Take the home away; return the folder for temporary files."""

    def find(_: str) -> Path:
        raise RuntimeError("could not determine the home directory")

    for variable in (STATE_VARIABLE, CACHE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("platformdirs.user_state_path", find)
    monkeypatch.setattr("platformdirs.user_cache_path", find)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_variable_goes_before_everything(monkeypatch: pytest.MonkeyPatch, homeless: Path) -> None:
    monkeypatch.chdir(homeless)
    monkeypatch.setenv(STATE_VARIABLE, "state")
    monkeypatch.setenv(CACHE_VARIABLE, "cache")
    assert (state_folder(), cache_folder()) == (homeless / "state", homeless / "cache")


def test_a_user_without_a_home_has_a_private_folder_below_the_temporary_ones(homeless: Path) -> None:
    private = homeless / f"twopc-of-{os.getuid()}"
    assert state_folder() == cache_folder() == private
    assert private.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_use_is_refused_with_the_variable_that_names_another(homeless: Path) -> None:
    private = homeless / f"twopc-of-{os.getuid()}"
    private.mkdir()
    private.chmod(0o755)
    with pytest.raises(
        ConfigurationError, match=f"has no home, and .* is no folder of that user alone: .*{STATE_VARIABLE}"
    ):
        state_folder()
    private.rmdir()
    private.symlink_to(homeless)
    with pytest.raises(ConfigurationError, match=f"name one with {CACHE_VARIABLE}"):
        cache_folder()


def test_where_no_folder_can_be_made_the_variable_is_named(homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(homeless / "nowhere"))
    with pytest.raises(ConfigurationError, match=rf"can't be made \(No such file.*{STATE_VARIABLE}, or a TMPDIR"):
        state_folder()


def test_a_user_whose_number_has_no_entry_has_a_home_all_the_same(
    monkeypatch: pytest.MonkeyPatch, homeless: Path
) -> None:
    def find(_: int) -> None:
        raise KeyError("getpwuid(): uid not found")

    assert home_of_a_nameless_user() is None
    monkeypatch.setattr("pwd.getpwuid", find)
    assert home_of_a_nameless_user() == homeless / f"twopc-of-{os.getuid()}"


def test_without_a_folder_for_temporary_files_tmpdir_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def find() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp', '/var/tmp', '/usr/tmp', '/']")

    monkeypatch.setattr("tempfile.gettempdir", find)
    with pytest.raises(ConfigurationError, match=r"^there is no folder for temporary files .*: name one with TMPDIR$"):
        temporary_folder()


def test_downloads_that_can_t_be_kept_name_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "new" / "cache"))
    assert made_cache_folder().is_dir()
    monkeypatch.setenv(CACHE_VARIABLE, "/proc/cache")
    with pytest.raises(ConfigurationError, match=rf"kept in /proc/cache .*: name another folder with {CACHE_VARIABLE}"):
        made_cache_folder()
