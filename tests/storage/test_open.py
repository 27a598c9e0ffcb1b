"""What a setting or an argument may name a checkpoint store by."""

from __future__ import annotations

from pathlib import Path

import pytest

from twopc.config import RunSettings
from twopc.errors import ConfigurationError
from twopc.storage.open import open_store


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/srv/checkpoints", "/srv/checkpoints"),
        ("file:///srv/checkpoints", "/srv/checkpoints"),
        ("file://localhost/srv/checkpoints", "/srv/checkpoints"),
        ("file:/srv/checkpoints", "/srv/checkpoints"),
        ("FILE:///srv/my%20own", "/srv/my own"),
        ("relative", "relative"),
        ("with:colon", "with:colon"),
    ],
)
def test_a_path_and_a_file_url_name_a_folder(text: str, path: str) -> None:
    assert open_store(text).place() == path
    assert RunSettings(checkpoint_dir=text).checkpoint_dir == text


def test_a_file_url_of_another_host_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"another host.*file:///PATH"):
        RunSettings(checkpoint_dir="file://elsewhere/srv")


def test_what_a_store_is_by_its_own_name_opens_it_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    names = {open_store(each).identity for each in ("link", "real/../real", f"file://{tmp_path}/real")}
    assert names == {str(tmp_path / "real")}
    assert open_store("link").within("job").identity == f"{tmp_path}/real/job"


def test_opening_makes_nothing_and_looks_for_nothing(tmp_path: Path) -> None:
    assert open_store(tmp_path / "nowhere").parts() == []
    assert list(tmp_path.iterdir()) == []
