"""`python -m tests.crash_cells.driver JOB_FILE EVENTS_FILE`: the driver of drills, whose workers may be stopped.

As `twopc.faults.driver`; but a worker that is stopped is left alone at the end of its attempt: somebody wakes it later.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import confluent_kafka  # noqa: F401 - what every worker imports when it runs
import rocksdict  # noqa: F401

import twopc.worker.bootstrap  # noqa: F401
from tests.warm_start import install_here
from twopc.driver.processes import ProcessHost, ProcessSubtasks
from twopc.faults.driver import main
from twopc.faults.process import is_stopped
from twopc.graph import JobDefinition
from twopc.runtime.spec import SubtaskSpec


class _LeavesZombies(ProcessSubtasks):
    def kill(self) -> None:
        every = self._processes
        self._processes = [process for process in every if not is_stopped(process.pid)]
        super().kill()
        self._processes = every


class ZombieHost(ProcessHost):
    """As ProcessHost; but a worker that is stopped outlives its attempt."""

    def submit(self, definition: JobDefinition, specs: Sequence[SubtaskSpec]) -> ProcessSubtasks:
        self._stage = _LeavesZombies([self._told(definition, spec) for spec in specs])
        return self._stage


if __name__ == "__main__":
    # The workers of a cell are many.
    install_here()
    sys.exit(main(ZombieHost(sys.argv[1])))
