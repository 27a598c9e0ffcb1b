"""What a setting or an argument may name a checkpoint store by."""

from __future__ import annotations

from pathlib import Path

import pytest

from twopc.config import RunSettings
from twopc.errors import ConfigurationError
from twopc.storage.open import absolute_place, open_store


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
    assert RunSettings(checkpoint_dir=text).checkpoint_dir == absolute_place(text)


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


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        ("S3://my.bucket-1/", "s3://my.bucket-1"),
        ("gs://bucket/a/b_c=d/", "gs://bucket/a/b_c=d"),
        ("az://container", "az://container"),
        # As it comes where something took the URL for a path.
        ("s3:/bucket/prefix", "s3://bucket/prefix"),
    ],
)
def test_a_bucket_and_a_prefix_name_a_store_by_which_it_is_found_again(text: str, identity: str) -> None:
    assert open_store(text).identity == identity
    assert open_store(identity).within("job").identity == f"{identity}/job"


@pytest.mark.parametrize(
    ("text", "identity"),
    [
        ("hdfs://namenode:8020/checkpoints", "hdfs://namenode:8020/checkpoints"),
        ("hdfs://name-service.org/a/b_c=d/", "hdfs://name-service.org/a/b_c=d"),
        ("hdfs:/namenode:8020/checkpoints", "hdfs://namenode:8020/checkpoints"),
    ],
)
def test_a_name_node_and_a_folder_name_a_store_by_which_it_is_found_again(text: str, identity: str) -> None:
    pytest.importorskip("hdfs_native", reason="HDFS needs the extra twopc-streams[hdfs]")
    assert open_store(text).identity == identity
    assert open_store(identity).within("job").identity == f"{identity}/job"


@pytest.mark.parametrize("url", ["hdfs:///checkpoints", "hdfs://me@host/x", "hdfs://host", "hdfs://host/../x"])
def test_a_url_of_hdfs_of_another_form_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"hdfs://NAMENODE:PORT/FOLDER"):
        RunSettings(checkpoint_dir=url)


@pytest.mark.parametrize(
    "url",
    ["s3://AKIA:5ec7e7@bucket/x", "az://container/x?sig=5ec7e7", "s3://", "s3://b/../x", "s3://b//x", "gs://b/ x"],
)
def test_a_url_of_another_form_is_refused_and_not_repeated_as_it_may_have_a_key_in_it(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"BUCKET/PREFIX.*environment variables") as refused:
        RunSettings(checkpoint_dir=url)
    assert "5ec7e7" not in str(refused.value)
