"""The class-data archive: written by one JVM at its end, used by those after it, never half."""

from __future__ import annotations

from pathlib import Path

import pytest

from twopc.class_archive import ClassArchive


@pytest.fixture
def java(tmp_path: Path) -> Path:
    path = tmp_path / "java"
    path.write_text("a JVM")
    return path


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars"
    folder.mkdir()
    return folder


def written(options: list[str]) -> Path:
    return Path(options[0].partition("=")[2])


def test_the_first_jvm_is_asked_to_write_it_and_those_after_it_use_it(java: Path, jars: Path, tmp_path: Path) -> None:
    archive = ClassArchive(java, jars)
    assert archive.use() == []
    options = archive.make(tmp_path)
    written(options).write_text("classes")
    archive.adopt(tmp_path)
    assert archive.make(tmp_path) == []
    (use,) = archive.use()
    assert Path(use.partition("=")[2]).read_text() == "classes"


def test_what_no_jvm_has_ended_to_write_is_not_used(java: Path, jars: Path, tmp_path: Path) -> None:
    archive = ClassArchive(java, jars)
    written(archive.make(tmp_path)).write_text("half of the cl")
    assert archive.use() == []


def test_another_jvm_has_another_archive(java: Path, jars: Path, tmp_path: Path) -> None:
    first = ClassArchive(java, jars)
    written(first.make(tmp_path)).write_text("classes")
    first.adopt(tmp_path)
    java.write_text("another JVM")
    assert ClassArchive(java, jars).use() == []


def test_a_second_one_that_was_written_meanwhile_is_dropped(java: Path, jars: Path, tmp_path: Path) -> None:
    archive = ClassArchive(java, jars)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        written(archive.make(folder)).write_text(folder.name)
    for folder in folders:
        archive.adopt(folder)
    assert [path.read_text() for path in jars.iterdir()] == ["one"]
    assert [list(folder.iterdir()) for folder in folders] == [[], []]
