"""A class-data archive for a JVM: with it a broker starts in half the time, and Spark in less.

The first JVM on a machine that ends in order writes one, and those after it use it. It is a matter of
speed only: a JVM that can't use what it finds, because the JVM or the jars have changed, starts without.

Invariant: a file under the archive's own name is whole, and was written by a JVM that has ended.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path


class ClassArchive:
    """The archive of one JVM for the jars in one folder, kept in that or in another one."""

    def __init__(self, java: Path, folder: Path, jars: Path | None = None) -> None:
        named = (java, *(() if jars is None else (jars,)))
        identity = hashlib.sha256(" ".join(map(_told_apart, named)).encode()).hexdigest()[:12]
        self._file = folder / f"classes-{identity}.jsa"

    def use(self) -> list[str]:
        """The options of a JVM that is to use the archive, if there is one."""
        return [f"-XX:SharedArchiveFile={self._file}"] if self._file.exists() else []

    def make(self, folder: Path) -> list[str]:
        """The options of a JVM that is to write the archive into a folder of its own when it ends, if there is none."""
        return [] if self._file.exists() else [f"-XX:ArchiveClassesAtExit={_written(folder)}"]

    def adopt(self, folder: Path) -> None:
        """Take over what a JVM has written into its folder; it must have ended."""
        written = _written(folder)
        arriving = self._file.with_name(f"{self._file.name}.arriving-{os.getpid()}")
        with suppress(OSError):
            if written.exists() and not self._file.exists():
                shutil.copyfile(written, arriving)
                arriving.rename(self._file)
        for leftover in (written, arriving):
            with suppress(OSError):
                leftover.unlink()


def _written(folder: Path) -> Path:
    return folder / "classes.jsa"


def _told_apart(path: Path) -> str:
    """Return what tells a program, or a folder of jars, from another one that comes to its place."""
    found = path.resolve().stat()
    return f"{path.resolve()} {found.st_size} {found.st_mtime_ns}"
