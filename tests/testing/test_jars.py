"""What may be started as Kafka: exactly the files of the committed list."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from twopc.errors import ConfigurationError, Unavailable
from twopc.testing import jars
from twopc.testing.jars import KAFKA, differences, ensure_jars, expected_digests
from twopc.user_folders import cache_folder

CONTENT = {"a-1.jar": b"first", "b-2.jar": b"second"}
DIGESTS = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
FAKE_IVY = """#!/bin/sh
test "$1" = -version && { echo 'openjdk version "17"' >&2; exit 0; }
for last; do :; done
folder=$(dirname "$last")
echo fetched >> "$TWOPC_CACHE_DIR/fetches"
%s
"""
GOOD = 'printf first > "$folder/a-1.jar"; printf second > "$folder/b-2.jar"'


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TWOPC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setattr(jars, "expected_digests", lambda _: DIGESTS)
    return tmp_path / "cache"


def ivy_does(cache: Path, script: str) -> None:
    java = cache.parent / "java" / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(FAKE_IVY % script)
    java.chmod(0o755)


def fetches(cache: Path) -> int:
    return len((cache / "fetches").read_text().splitlines())


def fill(folder: Path, content: Mapping[str, bytes] = CONTENT) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, body in content.items():
        (folder / name).write_bytes(body)
    return folder


def test_the_committed_list_names_kafka_and_each_digest_is_a_sha_256() -> None:
    expected = expected_digests(KAFKA)
    assert "kafka_2.13-4.3.1.jar" in expected
    assert all(len(bytes.fromhex(digest)) == 32 for digest in expected.values())


def test_the_expected_files_and_nothing_else_are_right(tmp_path: Path) -> None:
    assert differences(fill(tmp_path), DIGESTS) is None


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"a-1.jar": b"First"}, "a-1.jar does not have the expected SHA-256"),
        ({"c-3.jar": b"third"}, "0 jars are missing and 1 are unknown"),
    ],
)
def test_a_changed_or_an_additional_jar_is_noticed(tmp_path: Path, change: dict[str, bytes], complaint: str) -> None:
    assert differences(fill(tmp_path, CONTENT | change), DIGESTS) == complaint


def test_a_folder_that_is_not_there_lacks_every_jar(tmp_path: Path) -> None:
    assert differences(tmp_path / "none", DIGESTS) == "2 jars are missing and 0 are unknown"


def test_jars_are_fetched_once(cache: Path) -> None:
    ivy_does(cache, GOOD)
    folder = ensure_jars()
    assert {path.name: path.read_bytes() for path in folder.glob("*.jar")} == CONTENT
    assert ensure_jars() == folder
    assert fetches(cache) == 1


def test_a_damaged_jar_is_fetched_again(cache: Path) -> None:
    ivy_does(cache, GOOD)
    (ensure_jars() / "a-1.jar").write_bytes(b"bit rot")
    assert differences(ensure_jars(), DIGESTS) is None
    assert fetches(cache) == 2


def test_what_an_interrupted_fetch_left_is_not_taken_for_a_result(cache: Path) -> None:
    fill(cache / "kafka-4.3.1.arriving", {"stray.jar": b""})
    ivy_does(cache, GOOD)
    assert differences(ensure_jars(), DIGESTS) is None


def test_fetched_jars_with_other_content_are_refused(cache: Path) -> None:
    ivy_does(cache, 'printf evil > "$folder/a-1.jar"; printf second > "$folder/b-2.jar"')
    with pytest.raises(ConfigurationError, match=r"can't be trusted: a-1\.jar does not have the expected SHA-256"):
        ensure_jars()
    assert not (cache / "kafka-4.3.1").exists()


def test_no_network_is_one_message_that_says_what_to_do(cache: Path) -> None:
    ivy_does(cache, "exit 1")
    with pytest.raises(Unavailable, match="failed: it is needed once, connect to a network and try again") as refused:
        ensure_jars()
    assert "\n" not in str(refused.value)


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWOPC_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path
