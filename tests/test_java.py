"""Which Java is taken, and what a person reads who has none that will do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from twopc.errors import ConfigurationError
from twopc.java import find_java, java_version


def fake_java(home: Path, version_line: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{version_line}' >&2\n")
    java.chmod(0o755)
    return java


def test_java_home_comes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = fake_java(tmp_path / "home", 'openjdk version "21.0.2" 2024-01-16')
    on_path = fake_java(tmp_path / "path", 'openjdk version "17.0.1" 2021-10-19')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_java() == wanted


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.22", "16"])
def test_a_java_that_is_too_old_is_refused_by_its_version(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, f'java version "{version}"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=f"is Java {version}, too old .* install Java 17 or newer"):
        find_java()


@pytest.mark.parametrize("version", ["17", "17.0.15", "21-ea", "25.0.1"])
def test_java_17_and_newer_will_do(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path, f'openjdk version "{version}" 2025-01-01')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == java
    assert java_version(java) == version


def test_no_java_at_all_is_one_message_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="no java found: install Java 17 or newer") as refused:
        find_java()
    assert "\n" not in str(refused.value)


def test_a_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=f"JAVA_HOME is {tmp_path}, but there is no"):
        find_java()


def test_a_java_that_does_not_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "").chmod(0o644)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match="does not run"):
        find_java()


def test_ctrl_c_at_the_terminal_does_not_reach_the_java_that_is_asked(tmp_path: Path) -> None:
    java = tmp_path / "java"
    ask_session = "read -r _pid _name _state _parent _group session _rest < /proc/$$/stat"
    java.write_text(f'#!/bin/sh\n{ask_session}\necho "version \\"$session\\""\n')
    java.chmod(0o755)
    assert int(java_version(java)) != os.getsid(0)
