"""The folder of one JVM, which goes when the JVM has ended and this process is done with it, whoever was killed."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from twopc.user_folders import temporary_folder

_KEEPER = """
read -r folder
read -r jvm
read -r end
left=300
while [ -n "$jvm" ] && [ $left -gt 0 ] && kill -0 "$jvm" 2>/dev/null; do sleep 0.2; left=$((left - 1)); done
rm -rf -- "$folder"
"""
"""Waits until its input ends, as it does with this process, then a minute at most for the JVM, and removes the folder.

All that it is told comes by its input: its command names neither Spark nor the folder, so nobody who looks for a JVM
by name finds it.
"""

_SECONDS = 5.0


class JvmFolder:
    """A folder below the one for temporary files, with a process of its own that outlives this one to remove it.

    That process is in a session of its own, so Ctrl-C and a signal to the process group pass it by. Where a whole
    machine or container ends, the folder stays.
    """

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="twopc-spark-", dir=temporary_folder()))
        self._keeper = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER],
            stdin=subprocess.PIPE,
            # A pipe of this process that it held open would not end with this process.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        self._tell(self.path)

    def belongs_to(self, pid: int) -> None:
        """The JVM runs, as this process."""
        self._tell(pid)

    def remove(self) -> None:
        """Remove it, once the JVM has ended."""
        assert self._keeper.stdin is not None
        # A line for the JVM, where none ran, and one for the end: whoever was forked off this process holds the input
        # open still.
        self._tell("\n")
        # What could not be written is tried again as it is closed.
        with suppress(BrokenPipeError):
            self._keeper.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._keeper.wait(_SECONDS)

    def _tell(self, line: Path | int | str) -> None:
        assert self._keeper.stdin is not None
        # Somebody who killed the keeper has no use for the folder either.
        with suppress(BrokenPipeError):
            self._keeper.stdin.write(f"{line}\n".encode())
            self._keeper.stdin.flush()
