"""Options with which Spark's JVM is up sooner, where it is ours and all of Spark is on this machine.

Such a JVM runs one stage, and no record goes through it: in its first seconds it loads classes and compiles. So it
compiles lightly, and loads its classes from an archive in the user's cache folder, which the first JVM that ends in
order has written. The user's own options come behind these, and count.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from twopc.class_archive import ClassArchive
from twopc.errors import ConfigurationError
from twopc.java import locate_java
from twopc.spark.master import is_local
from twopc.spark_home import spark_home
from twopc.user_folders import made_cache_folder

LIGHT = "-XX:TieredStopAtLevel=1"
QUIET = "-Xlog:cds*=off"
"""What a JVM says of an archive that it can't use, or of classes that it leaves out, is nobody's concern."""

ARCHIVE_SECONDS = 30.0
"""How long a JVM may take to write the archive; it takes a few."""

_LAUNCHER = "SPARK_LAUNCHER_OPTS"
_VARIABLES = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "SPARK_SUBMIT_OPTS", _LAUNCHER)


class QuickStart:
    """The start of one JVM, and of those after it."""

    def __init__(self, master: str) -> None:
        # Somebody else's choice of an archive is left alone.
        chosen = any("SharedArchiveFile" in os.environ.get(variable, "") for variable in _VARIABLES)
        self._is_meant = is_local(master) and not chosen
        self._archive: ClassArchive | None = None
        self.archive_seconds = 0.0
        """How much longer the JVM may take to end, where it writes an archive then."""

    def options(self, folder: Path) -> Sequence[str]:
        """Return the options of a JVM that is about to start, and may write into this folder as it ends."""
        if not self._is_meant:
            return ()
        # Of the JVM that only says how Spark's is started.
        os.environ.setdefault(_LAUNCHER, f"{LIGHT} -XX:+UseSerialGC")
        self._archive = _archive()
        if self._archive is None:
            return (LIGHT,)
        if use := self._archive.use():
            return (LIGHT, QUIET, *use)
        self.archive_seconds = ARCHIVE_SECONDS
        return (LIGHT, QUIET, *self._archive.make(folder))

    def keep(self, folder: Path) -> None:
        """Keep what a JVM that has ended has written into its folder."""
        if self._archive is not None and self.archive_seconds:
            self._archive.adopt(folder)


def _archive() -> ClassArchive | None:
    """Return the archive for this Java and this Spark; None where nothing can be kept."""
    try:
        home = Path(os.environ.get("SPARK_HOME") or spark_home())
        return ClassArchive(locate_java(), made_cache_folder(), home / "jars")
    except (ConfigurationError, OSError):
        return None
