"""Makes what every other target of the Makefile needs: a virtual environment and Kafka's jars.

Only the standard library is there when this runs, and those modules of the project that need nothing else.

Invariants:

- A stamp is written last: an environment whose stamp does not fit the lock file is made again, from nothing.
- Every package comes from `requirements.lock` and has its hash there, the one that builds the others too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import platform
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from twopc.errors import ConfigurationError, TwoPhaseCommitError, Unavailable
from twopc.java import find_java

ROOT = Path(__file__).resolve().parents[1]
BUILD_PACKAGE = "setuptools"
SIGNS_OF_NO_NETWORK = (
    "ConnectTimeoutError",
    "NameResolutionError",
    "NewConnectionError",
    "ProxyError",
    "ReadTimeoutError",
    "Network is unreachable",
)


def main() -> int:
    """Set everything up, or say in one line what is missing."""
    environment = Environment(ROOT)
    try:
        find_java()
        environment.ensure()
        return subprocess.call([environment.python, "-m", "scripts.kafka_jars"], cwd=ROOT)
    except TwoPhaseCommitError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


class Environment:
    """The virtual environment of one checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".venv"
        self.python = self.folder / "bin" / "python"
        self._lock = root / "requirements.lock"
        self._packages = Stamp(self.folder / "stamp-packages", self._lock)
        compiled = sorted((root / "twopc").rglob("*.[ch]"))
        self._project = Stamp(self.folder / "stamp-project", root / "pyproject.toml", root / "setup.py", *compiled)

    def ensure(self) -> None:
        """Bring it up to date: nothing to do in all runs but the first, and those after a change of its inputs."""
        if not (self._packages.fits() and self._works()):
            print(f"set-up: installing {self._lock.name} into .venv; the first time takes minutes", flush=True)
            self._create()
            self._install_packages()
            self._packages.write()
        if not self._project.fits():
            # As a folder on the path: type checkers don't see what setuptools' import hook finds.
            self._pip("--no-deps", "--config-settings", "editable_mode=compat", "--editable", self.root)
            self._project.write()

    def _works(self) -> bool:
        # The Python that it was made with may have been upgraded or removed since.
        command = [str(self.python), "-c", "import orjson"]
        return self.python.exists() and subprocess.run(command, capture_output=True, check=False).returncode == 0

    def _create(self) -> None:
        check_venv_module()
        command = [sys.executable, "-m", "venv", "--clear", str(self.folder)]
        made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if made.returncode != 0:
            raise ConfigurationError(
                f"{sys.executable} -m venv failed, mend that and try again: {summary(made.stdout)}"
            )

    def _install_packages(self) -> None:
        build = self.folder / "build-requirements.txt"
        build.write_text("".join(entry_of(BUILD_PACKAGE, self._lock.read_text())))
        for requirements in (build, self._lock):
            self._pip("--require-hashes", "--requirement", requirements)

    def _pip(self, *arguments: str | Path) -> None:
        command = [str(self.python), "-m", "pip", "install", "--no-input", "--progress-bar=off"]
        # An isolated build would fetch whatever setuptools is newest, with no hash to check.
        command += ["--no-build-isolation", "--use-pep517"]
        log = self.folder / "pip.log"
        with log.open("w") as output:
            ended = subprocess.call([*command, *arguments], stdout=output, stderr=subprocess.STDOUT)
        if ended != 0:
            raise pip_failure(log)


class Stamp:
    """A file that says which version of its inputs the environment beside it was made from, and where."""

    def __init__(self, path: Path, *sources: Path) -> None:
        self._path = path
        self._sources = sources

    def fits(self) -> bool:
        """Whether it was written for the inputs as they are now, in this place: an environment can't be moved."""
        return self._path.is_file() and self._path.read_text() == self._text()

    def write(self) -> None:
        """Say that the environment is up to date."""
        self._path.write_text(self._text())

    def _text(self) -> str:
        return "".join(f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each}\n" for each in self._sources)


def check_venv_module() -> None:
    """Refuse a Python from which its distributor has split the venv module off."""
    if any(importlib.util.find_spec(module) is None for module in ("venv", "ensurepip")):
        raise ConfigurationError(
            f"{sys.executable}, Python {platform.python_version()}, has no venv module: "
            "install it (Debian and Ubuntu call it python3-venv) and try again"
        )


def entry_of(package: str, lock: str) -> Iterator[str]:
    """The lines of one package in a lock file: its name, then its hashes, indented."""
    inside = False
    for line in lock.splitlines(keepends=True):
        if not line.startswith(" "):
            inside = line.startswith(f"{package}==")
        if inside:
            yield line


def pip_failure(log: Path) -> TwoPhaseCommitError:
    """What pip's output comes to: no network, or pip's own word for it."""
    output = log.read_text()
    if any(sign in output for sign in SIGNS_OF_NO_NETWORK):
        return Unavailable(
            "the Python packages can't be fetched: the first set-up needs a network, connect to one and try again; "
            f"details are in {log}"
        )
    return ConfigurationError(f"pip can't install the packages: {summary(output)}; details are in {log}")


def summary(output: str) -> str:
    """The last line of a build that failed, else the first that calls itself an error, else the last of all."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    builds = [line for line, after in pairwise(lines) if after == "[end of output]"]
    errors = [line for line in lines if line.lower().startswith("error")]
    return [*builds[:1], *errors[:1], *lines[-1:], "it says nothing"][0]


if __name__ == "__main__":
    sys.exit(main())
