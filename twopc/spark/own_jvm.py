"""Spark's JVM where this process has started it: a folder of its own for what it leaves, and its end.

Spark writes into the folder for temporary files while it runs: what it unpacks, an application's artifacts, blocks. It
removes all that as it ends in order, and nothing where it is killed. So a JVM of ours has one of its own, which goes
when the JVM has ended, in whatever way.
"""

from __future__ import annotations

import atexit
import logging
import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress

from twopc.spark.jvm_folder import JvmFolder
from twopc.spark.quick_start import QuickStart

log = logging.getLogger(__name__)

END_SECONDS = 5.0
"""How long a JVM may take to end; one that stands still is killed then."""


DYING_SECONDS = 0.5
"""How long the connection to a JVM may be gone before its process is."""


class OwnJvm:
    """One JVM: made before it starts, so that it is told of its folder."""

    def __init__(self, quick: QuickStart) -> None:
        self._quick = quick
        self._folder = JvmFolder()
        self._process: subprocess.Popen[bytes] | None = None
        self._of = os.getpid()

    def options(self) -> Sequence[str]:
        """Return the options with which it starts."""
        return (f'"-Djava.io.tmpdir={self._folder.path}"', *self._quick.options(self._folder.path))

    def started(self, process: subprocess.Popen[bytes]) -> None:
        """It runs, as this process; it is ended with ours, unless it is killed before."""
        self._process = process
        self._folder.belongs_to(process.pid)
        atexit.register(self._end)

    def was_killed(self) -> bool:
        """Say whether it has ended by a signal; one that is about to is waited for."""
        with suppress(subprocess.TimeoutExpired):
            return self._process is not None and self._process.wait(DYING_SECONDS) < 0
        return False

    def kill(self) -> None:
        """End it now, if it ever ran, and remove its folder."""
        if self._process is not None:
            atexit.unregister(self._end)
            self._process.kill()
            self._end_input()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_SECONDS)
        self._folder.remove()

    def _end(self) -> None:
        """Let it end in order, which takes a moment longer once on a machine, for what later ones start with."""
        if os.getpid() != self._of:
            # A process that was forked off this one ends, and the JVM is not its own.
            return
        assert self._process is not None
        self._end_input()
        if self._quick.archive_seconds:
            log.info("keeping what Spark has loaded, once on this machine: from now on it starts in half the time")
        # Whoever does not want to wait for that presses Ctrl-C.
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            if self._process.wait(END_SECONDS + self._quick.archive_seconds) == 0:
                self._quick.keep(self._folder.path)
        self.kill()

    def _end_input(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
