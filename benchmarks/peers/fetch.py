"""Gets what a peer needs into the user's cache, once: a Python environment, jars, compiled Java.

pip and Maven know where to look. A folder that was not made whole has no mark and is made again.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from zipfile import ZipFile

from peers.system import PROGRAMS, Missing
from twopc.errors import ConfigurationError
from twopc.java import find_java
from twopc.user_folders import cache_folder

FETCH_SECONDS = 1_200
COMPLAINT_CHARACTERS = 300
_MARK = "made-of"


def environment(name: str, *requirements: str) -> Path:
    """Return the Python of an environment that has these, made first where it is missing."""

    def make(folder: Path) -> None:
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *requirements])

    return _made(f"{name}-environment", " ".join(requirements), make) / "bin" / "python"


def jars(program: str) -> Path:
    """Return the folder of the jars that the pom.xml of a program asks for."""
    pom = PROGRAMS / program / "pom.xml"

    def make(folder: Path) -> None:
        mvn = _tool("mvn")
        _run([mvn, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"])

    return _made(f"{program}-jars", pom.read_text(), make)


def classes(program: str, *against: Path) -> Path:
    """Return the folder of a program's compiled Java, compiled against the jars in these folders."""
    sources = sorted((PROGRAMS / program).glob("*.java"))

    def make(folder: Path) -> None:
        path = ":".join(f"{each}/*" for each in against)
        _run([_tool("javac"), "-nowarn", "-cp", path, "-d", str(folder), *map(str, sources)])

    return _made(f"{program}-classes", "".join(source.read_text() for source in sources), make)


def packed(program: str, *against: Path) -> Path:
    """Return the same as one jar."""
    compiled = classes(program, *against)
    jar = compiled.with_name(f"{program}.jar")
    with ZipFile(jar, "w") as archive:
        for path in sorted(compiled.glob("*.class")):
            archive.write(path, path.name)
    return jar


def java() -> str:
    """Return the Java to use; raise Missing if there is none."""
    try:
        return str(find_java())
    except ConfigurationError as error:
        raise Missing(str(error)) from error


def jar_versions(folder: Path, *names: str) -> str:
    """Return the names of these jars, which say their versions."""
    return ", ".join(path.stem for name in names for path in sorted(folder.glob(f"{name}-[0-9]*.jar")))


def package_versions(python: Path, *names: str) -> str:
    """Return the versions of these packages in an environment."""
    script = "import sys, importlib.metadata as m; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    return subprocess.run([python, "-c", script, *names], check=True, capture_output=True, text=True).stdout.strip()


def site_packages(python: Path) -> Path:
    """Return where an environment keeps its packages."""
    return next((python.parents[1] / "lib").glob("python*/site-packages"))


def _made(name: str, recipe: str, make: Callable[[Path], None]) -> Path:
    folder = cache_folder() / "peers" / name
    mark, wanted = folder / _MARK, hashlib.sha256(recipe.encode()).hexdigest()
    if mark.exists() and mark.read_text() == wanted:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"making {name}", flush=True)
    make(folder)
    mark.write_text(wanted)
    return folder


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Missing(f"{name} is not on PATH")
    return found


def _run(argv: Sequence[str]) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise Missing(f"{Path(argv[0]).name} had not ended after {FETCH_SECONDS} s") from error
    if done.returncode != 0:
        raise Missing(f"{Path(argv[0]).name} failed: {(done.stdout + done.stderr).strip()[-COMPLAINT_CHARACTERS:]}")
