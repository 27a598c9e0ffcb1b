from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from scripts import environment
from scripts.environment import ROOT, Environment, Stamp, check_venv_module, entry_of, pip_failure
from twopc.errors import ConfigurationError, Unavailable

LOCK = """\
cfgv==1 \\
    --hash=sha256:a
setuptools==84 \\
    --hash=sha256:b \\
    --hash=sha256:c
zope==2 \\
    --hash=sha256:d
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Environment:
    """A checkout of which only the inputs are there."""
    (tmp_path / "requirements.lock").write_text(LOCK)
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "setup.py").write_text("")
    return Environment(tmp_path)


@pytest.fixture
def commands(checkout: Environment, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stands in for venv and pip; holds what they were asked for, in a word each."""
    asked: list[str] = []

    def create() -> None:
        asked.append("venv")
        checkout.python.parent.mkdir(parents=True, exist_ok=True)
        checkout.python.unlink(missing_ok=True)
        checkout.python.symlink_to(sys.executable)

    monkeypatch.setattr(checkout, "_create", create)
    monkeypatch.setattr(checkout, "_pip", lambda *arguments: asked.append(Path(arguments[-1]).name))
    monkeypatch.setattr(checkout, "_works", checkout.python.exists)
    return asked


def test_the_package_that_builds_the_others_is_installed_before_them(
    checkout: Environment, commands: list[str]
) -> None:
    checkout.ensure()
    assert commands == ["venv", "build-requirements.txt", "requirements.lock", checkout.root.name]
    assert (checkout.folder / "build-requirements.txt").read_text() == "".join(entry_of("setuptools", LOCK))


def test_the_project_is_installed_where_type_checkers_find_it(
    checkout: Environment, commands: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str | Path, ...]] = []
    monkeypatch.setattr(checkout, "_pip", lambda *arguments: asked.append(arguments))
    checkout.ensure()
    assert asked[-1] == ("--no-deps", "--config-settings", "editable_mode=compat", "--editable", checkout.root)


def test_a_second_run_has_nothing_to_do(checkout: Environment, commands: list[str]) -> None:
    checkout.ensure()
    commands.clear()
    checkout.ensure()
    assert commands == []


def test_what_is_compiled_is_compiled_again_when_it_has_changed(checkout: Environment, commands: list[str]) -> None:
    folder = checkout.root / "twopc" / "kafka" / "native"
    folder.mkdir(parents=True)
    (folder / "module.c").write_text("one")
    changing = Environment(checkout.root)
    changing.folder.mkdir()
    changing._project.write()
    assert changing._project.fits()
    (folder / "module.c").write_text("another")
    assert not changing._project.fits()


def test_a_new_lock_makes_the_environment_again(checkout: Environment, commands: list[str]) -> None:
    checkout.ensure()
    commands.clear()
    (checkout.root / "requirements.lock").write_text(LOCK.replace("zope==2", "zope==3"))
    checkout.ensure()
    assert commands[0] == "venv"


def test_a_new_pyproject_only_installs_the_project_again(checkout: Environment, commands: list[str]) -> None:
    checkout.ensure()
    commands.clear()
    (checkout.root / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    checkout.ensure()
    assert commands == [checkout.root.name]


def test_an_environment_whose_python_is_gone_is_made_again(checkout: Environment, commands: list[str]) -> None:
    checkout.ensure()
    commands.clear()
    checkout.python.unlink()
    checkout.ensure()
    assert commands[0] == "venv"


def test_an_installation_that_failed_is_started_again_from_nothing(
    checkout: Environment, commands: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise Unavailable("no network")

    with monkeypatch.context() as patch:
        patch.setattr(checkout, "_pip", fail)
        with pytest.raises(Unavailable):
            checkout.ensure()
    commands.clear()
    checkout.ensure()
    assert commands[0] == "venv"


def test_a_stamp_does_not_fit_in_another_place(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for place in (here, there):
        place.mkdir()
        (place / "input").write_text("same")
    Stamp(here / "stamp", here / "input").write()
    (here / "stamp").rename(there / "stamp")
    assert not Stamp(there / "stamp", there / "input").fits()


def test_the_lock_of_this_repository_holds_the_build_package() -> None:
    entry = list(entry_of(environment.BUILD_PACKAGE, (ROOT / "requirements.lock").read_text()))
    assert entry[0].startswith("setuptools==")
    assert all(line.startswith("    --hash=sha256:") for line in entry[1:])


def test_an_entry_ends_where_the_next_package_begins() -> None:
    assert "".join(entry_of("setuptools", LOCK)) == ("setuptools==84 \\\n    --hash=sha256:b \\\n    --hash=sha256:c\n")


def test_the_project_is_built_where_only_what_builds_it_is_installed(tmp_path: Path) -> None:
    packages = Path(sysconfig.get_path("purelib"))
    for name in ("setuptools", "_distutils_hack"):
        (tmp_path / name).symlink_to(packages / name)
    asked = subprocess.run(
        # Without the installed packages, and without the folder of setup.py: so do the hooks of pip run it.
        [sys.executable, "-S", "-P", ROOT / "setup.py", "--version"],
        cwd=ROOT,
        env={"PATH": os.defpath, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (asked.stdout.split(), asked.returncode) == (["0.1.0"], 0), asked.stderr


def test_a_missing_network_is_called_that(tmp_path: Path) -> None:
    log = tmp_path / "pip.log"
    log.write_text(
        "WARNING: Retrying after connection broken by 'NewConnectionError(...)'\nERROR: No matching distribution\n"
    )
    failure = pip_failure(log)
    assert isinstance(failure, Unavailable)
    assert "needs a network" in str(failure)


def test_another_failure_is_told_in_the_words_of_pip(tmp_path: Path) -> None:
    log = tmp_path / "pip.log"
    log.write_text("Collecting x\nERROR: THESE PACKAGES DO NOT MATCH THE HASHES\n    Expected a\n")
    failure = pip_failure(log)
    assert isinstance(failure, ConfigurationError)
    assert "DO NOT MATCH THE HASHES" in str(failure)


def test_a_build_that_failed_is_told_in_the_words_of_the_build(tmp_path: Path) -> None:
    log = tmp_path / "pip.log"
    log.write_text(
        "  error: subprocess-exited-with-error\n  │ exit code: 1\n  ╰─> [2 lines of output]\n      Traceback:\n"
        "      ModuleNotFoundError: No module named 'x'\n      [end of output]\nerror: metadata-generation-failed\n"
    )
    assert "install the packages: ModuleNotFoundError: No module named 'x'; details" in str(pip_failure(log))


def test_a_python_without_the_venv_module_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match="no venv module"):
        check_venv_module()


def run_set_up(java_home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / "bootstrap.py"],
        env={"PATH": "/usr/bin:/bin", "JAVA_HOME": str(java_home)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_a_missing_java_is_said_in_one_line_before_anything_is_made(tmp_path: Path) -> None:
    ended = run_set_up(tmp_path / "nothing")
    assert ended.returncode == 1
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert "install Java 17 or newer" in line


def test_an_old_java_is_said_in_one_line_before_anything_is_made(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    ended = run_set_up(tmp_path)
    assert ended.returncode == 1
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert "is Java 11.0.2, too old" in line
