"""`python -m tests.crash_cells.driver JOB_FILE`: runs a job in plain processes as `twopc run` does, to be drilled.

Two things differ. Its events go to the file that DRILL_EVENTS names, one JSON line each, so that a judge can read what
several drivers did. And at the end of an attempt it leaves a worker alone that is stopped: a zombie, which somebody
else wakes later.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

import psutil

from twopc.config import RunSettings
from twopc.driver.processes import ProcessHost, ProcessStage
from twopc.driver.run import run
from twopc.errors import TwoPhaseCommitError
from twopc.graph import JobDefinition
from twopc.loader.job_loader import load_job
from twopc.protocol.job_events import JobEvent
from twopc.runtime.spec import SubtaskSpec


class _LeavesZombies(ProcessStage):
    def kill(self) -> None:
        every = self._processes
        self._processes = [process for process in every if not _is_stopped(process.pid)]
        super().kill()
        self._processes = every


class ZombieHost(ProcessHost):
    """As ProcessHost; but a worker that is stopped outlives its attempt."""

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> ProcessStage:
        self._stage = _LeavesZombies([self._start(spec) for spec in specs])
        return self._stage


def _is_stopped(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.NoSuchProcess:
        return False


def _note(event: JobEvent) -> None:
    line = json.dumps({"driver": os.getpid(), **asdict(event)}) + "\n"
    descriptor = os.open(os.environ["DRILL_EVENTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def main() -> int:
    """Run the job; print its report as JSON, or its error, and return the exit code that `twopc run` would."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("kafka").setLevel(logging.WARNING)
    job_file = sys.argv[1]
    settings = RunSettings.resolve(host="process", until_end=True)
    try:
        report = run(load_job(job_file), settings, on_event=_note, job_file=job_file, host=ZombieHost(job_file))
    except TwoPhaseCommitError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return error.exit_code
    sys.stdout.write(json.dumps(asdict(report)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
