"""Subtasks as plain processes on this machine: no JVM; for development and for tests that kill things."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from twopc.driver.host import Told
from twopc.errors import TwoPhaseCommitError, Unavailable, UserCodeError
from twopc.logs import pass_on

if TYPE_CHECKING:
    # Workers begin while the driver imports the likes of these.
    from twopc.config import RunSettings
    from twopc.graph import JobDefinition
    from twopc.runtime.spec import SubtaskSpec

TERM_SECONDS = 5.0
POLL_SECONDS = 0.01

LAST_WORDS_SECONDS = 1.0
"""How long the last lines of workers that have ended are waited for; what a worker forked may hold its pipe open."""

SAID_WHY = 3
"""How a worker ends that has told the coordinator why; Python itself ends with 1."""

TOLD_TO_END = 64
"""How a worker ends that the coordinator told to. Not 0: that is how a function ends it by sys.exit or os._exit."""


class ProcessSubtasks:
    """One process per subtask."""

    def __init__(self, processes: Sequence[subprocess.Popen[str]]) -> None:
        self._processes = processes
        self._output_readers = [pass_on(process.stdout) for process in processes if process.stdout is not None]

    def wait(self, timeout: float) -> bool:
        return self._wait_for(any, timeout)

    def drain(self, timeout: float) -> None:
        self._wait_for(all, timeout)

    def error(self) -> TwoPhaseCommitError | None:
        for index, process in enumerate(self._processes):
            code = process.poll()
            if code is None or code == TOLD_TO_END:
                continue
            if code == 0:
                return UserCodeError(
                    f"a process of subtask {index} (pid {process.pid}) ended (exit code 0) before the job had "
                    "finished: does a function end it, e.g. by sys.exit or os._exit?"
                )
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
            return Unavailable(f"the process of subtask {index} (pid {process.pid}) {how}")
        return None

    def told_why(self) -> Told:
        codes = [process.poll() for process in self._processes]
        if SAID_WHY in codes:
            return Told.YES
        return Told.NO if any(code is not None and code < 0 for code in codes) else Told.PERHAPS

    def shortage(self) -> str | None:
        return None

    def _wait_for(self, which: Callable[[Iterable[bool]], bool], timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while not which([process.poll() is not None for process in self._processes]):
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def kill(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + TERM_SECONDS
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _end_session(process.pid)
        self._await_last_words()

    def _await_last_words(self) -> None:
        deadline = time.monotonic() + LAST_WORDS_SECONDS
        for thread in self._output_readers:
            thread.join(max(0.0, deadline - time.monotonic()))


def _end_session(leader: int) -> None:
    """End what a worker that has ended started, and left behind in the session that it led."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


class ProcessHost:
    """Starts `python -m twopc.worker` for each subtask; the job is loaded anew from its file, never pickled."""

    def __init__(self, job_file: str) -> None:
        self._job_file = job_file
        self._running: ProcessSubtasks | None = None
        self._folder: Path | None = None
        self._waiting: list[subprocess.Popen[str]] = []

    def begin(self, parallelism: int) -> None:
        """Start workers that import what they need, and wait to be told what they are."""
        self._folder = Path.cwd()
        self._waiting = [self._start(self._folder) for _ in range(parallelism)]

    def notice(self) -> str | None:
        return None

    def refusal(self, parallelism: int) -> str | None:
        return None

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> ProcessSubtasks:
        self._running = ProcessSubtasks([self._told(definition, spec) for spec in specs])
        return self._running

    def _told(self, definition: JobDefinition, spec: SubtaskSpec) -> subprocess.Popen[str]:
        """Return a worker that is told its spec: one that waits where the job was loaded, else a new one."""
        from twopc.protocol.codec import to_json

        folder = None if definition.origin is None else definition.origin.folder
        fits = self._waiting and folder in (None, self._folder)
        process = self._waiting.pop() if fits else self._start(folder)
        assert process.stdin is not None
        # One that has died meanwhile is found by its exit code, as any other.
        with suppress(BrokenPipeError), process.stdin as pipe:
            pipe.write(json.dumps(to_json(spec)))
        return process

    def _start(self, folder: Path | None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            # -P: a file in the working folder that is named as a library is not that library.
            [sys.executable, "-P", "-m", "twopc.worker", self._job_file, str(os.getpid())],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def close(self) -> None:
        for process in self._waiting:
            # It has done nothing yet that it could end in order.
            process.kill()
            with process:
                pass
        self._waiting = []
        if self._running is not None:
            self._running.kill()


@contextmanager
def plain_processes_begun(settings: RunSettings, job_file: str | None) -> Iterator[ProcessHost | None]:
    """Give the host of plain processes, whose workers start while the driver imports and plans; None for other hosts.

    It is for `twopc.driver.run`, which need not have been imported before.
    """
    if settings.host != "process" or job_file is None:
        yield None
        return
    with closing(ProcessHost(job_file)) as host:
        # More of them than cores would only be in each other's way, and in the driver's.
        host.begin(min(settings.parallelism, os.cpu_count() or 1))
        yield host
