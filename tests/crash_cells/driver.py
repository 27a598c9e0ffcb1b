"""`python -m tests.crash_cells.driver JOB_FILE EVENTS_FILE`: the driver of drills, whose workers may be stopped.

As `twopc.faults.driver`; but a worker that is stopped is left alone at the end of its attempt: somebody wakes it later.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import cast

from tests.crash_cells.fork_server import ForkServer
from twopc.driver.processes import ProcessHost, ProcessStage
from twopc.faults.driver import main
from twopc.faults.process import is_stopped
from twopc.graph import JobDefinition
from twopc.protocol.codec import to_json
from twopc.runtime.spec import SubtaskSpec


class _LeavesZombies(ProcessStage):
    def kill(self) -> None:
        every = self._processes
        self._processes = [process for process in every if not is_stopped(process.pid)]
        super().kill()
        self._processes = every


class ZombieHost(ProcessHost):
    """As ProcessHost; but a worker that is stopped outlives its attempt, and all are forked, as they are many."""

    def __init__(self, job_file: str, fork_server: ForkServer) -> None:
        super().__init__(job_file)
        self._fork_server = fork_server

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> ProcessStage:
        self._stage = _LeavesZombies([self._start(spec) for spec in specs])
        return self._stage

    def _start(self, spec: SubtaskSpec) -> subprocess.Popen[str]:
        worker = self._fork_server.start([self._job_file, str(os.getpid())], json.dumps(to_json(spec)))
        return cast("subprocess.Popen[str]", worker)


if __name__ == "__main__":
    sys.exit(main(ZombieHost(sys.argv[1], ForkServer())))
