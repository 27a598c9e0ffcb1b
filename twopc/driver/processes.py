"""Subtasks as plain processes on this machine: no JVM; for development and for tests that kill things."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from twopc.job import JobDefinition
from twopc.logs import pass_on
from twopc.runtime.spec import SubtaskSpec

TERM_SECONDS = 5.0

LAST_WORDS_SECONDS = 1.0
"""How long the last lines of workers that have ended are waited for; what a worker forked may hold its pipe open."""

SAID_WHY = 3
"""How a worker ends that has told the coordinator why; Python itself ends with 1."""


class ProcessStage:
    """One process per subtask; the first that fails fails the stage."""

    def __init__(self, processes: Sequence[subprocess.Popen[str]]) -> None:
        self._processes = processes
        self._said = [pass_on(process.stdout) for process in processes if process.stdout is not None]

    def wait(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        while True:
            codes = [process.poll() for process in self._processes]
            if all(code is not None for code in codes) or any(codes):
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)

    def error(self) -> str | None:
        for index, process in enumerate(self._processes):
            code = process.poll()
            if code is None or code == 0:
                continue
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
            return f"the process of subtask {index} (pid {process.pid}) {how}"
        return None

    def has_said_why(self) -> bool:
        return any(process.poll() == SAID_WHY for process in self._processes)

    def shortage(self) -> str | None:
        return None

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
        self._await_last_words()

    def _await_last_words(self) -> None:
        deadline = time.monotonic() + LAST_WORDS_SECONDS
        for thread in self._said:
            thread.join(max(0.0, deadline - time.monotonic()))


class ProcessHost:
    """Starts `python -m twopc.worker` for each subtask; the job is loaded anew from its file, never pickled."""

    def __init__(self, job_file: str) -> None:
        self._job_file = job_file
        self._stage: ProcessStage | None = None

    def notice(self) -> str | None:
        return None

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> ProcessStage:
        self._stage = ProcessStage([self._start(spec) for spec in specs])
        return self._stage

    def _start(self, spec: SubtaskSpec) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "twopc.worker", self._job_file, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(spec.to_json()))
        process.stdin.close()
        return process

    def close(self) -> None:
        if self._stage is not None:
            self._stage.kill()
