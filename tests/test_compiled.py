"""A compiled part counts only where it was built from the sources that stand beside it."""

from __future__ import annotations

import logging
import shutil
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from twopc import compiled as finding
from twopc.build_mark import MARK, mark_of
from twopc.compiled import LOOPS, PARTS, NotCompiled, compiled, problems


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a package `copied` with a compiled module, and its source."""
    pytest.importorskip(LOOPS, reason="there was no C compiler when twopc was installed")
    found = find_spec(LOOPS)
    assert found is not None
    assert found.origin is not None
    folder = tmp_path / "copied"
    folder.mkdir()
    (folder / "__init__.py").touch()
    shutil.copy(found.origin, folder)
    shutil.copy(Path(found.origin).with_name("_loops.c"), folder)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(finding, "_found", finding._found.__wrapped__)
    yield folder
    for name in ("copied", "copied._loops"):
        sys.modules.pop(name, None)


def test_what_was_built_here_is_of_the_sources_that_are_here() -> None:
    for name in PARTS:
        pytest.importorskip(name, reason="there was no C compiler when twopc was installed")
    assert problems() == []


def test_what_was_built_from_the_sources_beside_it_is_taken(copied: Path) -> None:
    assert compiled("copied._loops").run_ends([1, 1, 2]) == [2, 3]


def test_what_was_built_from_other_sources_is_left_alone_and_said_with_what_to_do(
    copied: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (copied / "_loops.c").open("a") as source:
        source.write("/* pulled */\n")
    with pytest.raises(NotCompiled, match=r"built from other sources than those beside it: build it again \(make se"):
        compiled("copied._loops")
    [said] = caplog.records
    assert (said.levelno, "with the same results" in said.message) == (logging.WARNING, True)
    assert "copied._loops" not in sys.modules


def test_an_installed_package_has_no_sources_to_compare_with(copied: Path) -> None:
    (copied / "_loops.c").unlink()
    assert mark_of(copied) == ""
    assert compiled("copied._loops").run_ends([]) == []


def test_what_was_not_built_is_said_with_what_to_do(copied: Path) -> None:
    with pytest.raises(NotCompiled, match=r"copied\._parts was not built .*install twopc again where there is a C"):
        compiled("copied._parts")


def test_the_mark_is_of_names_and_contents(tmp_path: Path) -> None:
    marks = []
    for file, text in (("a.c", "x"), ("a.c", "y"), ("b.c", "y"), ("c.h", "")):
        (tmp_path / file).write_text(text)
        marks.append(mark_of(tmp_path))
    assert len(set(marks)) == 4
    assert all(mark.startswith(MARK) for mark in marks)


def test_every_part_that_is_built_is_known_by_name() -> None:
    text = (Path(finding.__file__).parents[1] / "pyproject.toml").read_text()
    assert [each["name"] for each in tomllib.loads(text)["tool"]["setuptools"]["ext-modules"]] == list(PARTS)
