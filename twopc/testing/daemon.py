"""A server on this machine as a process of its own: its log, its end, and what it has of our environment."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from twopc.errors import Unavailable

STOP_SECONDS = 30.0
_POLL_SECONDS = 0.1
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")


class Daemon:
    """At most one process at a time, in a session of its own; it works in its folder, and its log is there."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def pid(self) -> int | None:
        """The process, while it runs."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def kill(self) -> None:
        """End it as a power cut would; what it started lives on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_SECONDS)

    def _begin(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start it, again after it has ended; return at once."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=dict(self._environment),
                start_new_session=True,
            )
        return self._process


def inherited_environment() -> dict[str, str]:
    """The environment of a server: this process's, without what tells a job, a driver or a client something."""
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}


def await_servers(title: str, daemons: Sequence[Daemon], is_ready: Callable[[], bool], seconds: float) -> None:
    """Return when they are ready; raise Unavailable, naming their logs, if one has ended or it takes too long."""
    deadline = time.monotonic() + seconds
    while not is_ready():
        if time.monotonic() > deadline or any(daemon.pid is None for daemon in daemons):
            raise Unavailable(f"{title} did not start; {' and '.join(str(each.log) for each in daemons)} say why")
        time.sleep(_POLL_SECONDS)
