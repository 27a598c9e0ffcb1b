"""A process of a drill: started, waited for, stopped, woken; its output in files of the drill's folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

PATIENCE_SECONDS = 180.0
_POLL_SECONDS = 0.01


class ManagedProcess:
    """One process, in a session of its own. Leaving the context ends it, if it has not ended."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.log = log
        self._patience_seconds = patience_seconds
        self._output = log.with_suffix(".out")
        with log.open("ab") as errors, self._output.open("ab") as output:
            self._process = subprocess.Popen(
                list(command), env=dict(environment), stdout=output, stderr=errors, start_new_session=True
            )

    def __enter__(self) -> ManagedProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    @property
    def output(self) -> str:
        return self._output.read_text()

    def wait(self) -> int:
        """Wait for its end; return the exit code."""
        return self._process.wait(self._patience_seconds)

    def kill(self) -> None:
        """End it as `kill -9` does, and return when it has ended."""
        self._process.kill()
        self._process.wait(self._patience_seconds)

    def finish(self) -> dict[str, Any]:
        """Wait for an end without errors; return the report that it printed."""
        code = self.wait()
        assert code == 0, f"{self.log.name} exited with {code}: {self.last_words()}"
        report = json.loads(self.output)
        assert isinstance(report, dict)
        return report

    @property
    def has_finished_job(self) -> bool:
        """Whether it was a driver that has read the input to its end; one that was asked to stop has not."""
        return self.exit_code == 0 and not self.finish()["stopped"]

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    def last_words(self, lines: int = 5) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def start_coordinator(
    checkpoint_dir: Path | str,
    port: int,
    environment: Mapping[str, str],
    log: Path,
    patience_seconds: float = PATIENCE_SECONDS,
) -> ManagedProcess:
    """Start a coordinator of its own, and return when it listens, or has ended; it ends with this process too."""
    command = [sys.executable, "-P", "-m", "twopc.worker.parent_watchdog", "twopc", "coordinator", "start"]
    command += ["--checkpoint-dir", str(checkpoint_dir)]
    started = ManagedProcess([*command, "--address", f"127.0.0.1:{port}"], environment, log, patience_seconds)
    try:
        await_true(
            lambda: started.exit_code is not None or "\n" in started.output,
            "the coordinator does not listen",
            patience_seconds,
        )
    except BaseException:
        started.kill()
        raise
    return started


def await_true(condition: Callable[[], bool], complaint: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Return when the condition holds; raise AssertionError with the complaint after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{complaint} within {seconds:.0f} s")
        time.sleep(_POLL_SECONDS)


def is_stopped(pid: int) -> bool:
    """Whether the process is there, and stopped."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.NoSuchProcess:
        return False


def wake(pid: int) -> None:
    """Let a stopped process go on; one that has ended is fine."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
