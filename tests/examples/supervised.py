"""An example program as `twopc run` runs it, whose processes are killed; the same command is given again, as it was."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

import psutil

from tests import warm_start
from tests.examples.programs.kit import Program
from twopc.faults.process import ManagedProcess


class SupervisedProgram:
    """Runs one program. Leaving the context ends what still runs; workers end with their driver."""

    def __init__(self, program: Program, servers: str, folder: Path, *host: str) -> None:
        self.kills: list[str] = []
        self._folder = folder
        self._command = [sys.executable, "-m", "twopc", "run", str(program.file), "--bootstrap-servers", servers]
        self._command += ["--checkpoint-dir", str(folder / "checkpoints"), "--checkpoint-interval", "200ms"]
        self._command += ["--parallelism", "2", "-o", "json", *host]
        self._runs: list[ManagedProcess] = []
        self._run = self._started()

    def __enter__(self) -> SupervisedProgram:
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._runs:
            run.__exit__()

    def tend(self) -> None:
        """Give the command again, where its process was killed; nothing else ends it."""
        code = self._run.exit_code
        if code is not None:
            assert code == -signal.SIGKILL, f"it exited with {code}: {self._run.last_words()}"
            self._run = self._started()

    def kill(self, random: Random) -> None:
        """`kill -9` the driver, or one of the processes below it; return when it has ended."""
        below: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            below = psutil.Process(self._run.pid).children(recursive=True)
        if not below or random.random() < 0.5:
            self.kills.append("driver")
            self._run.kill()
            return
        victim = random.choice(below)
        with suppress(psutil.NoSuchProcess):
            self.kills.append(victim.name())
            victim.kill()

    def finish(self) -> None:
        """Kill the driver once more, and run the program to the end of its input."""
        self._run.kill()
        self._run = self._started("--until-end")
        self._run.finish()

    def _started(self, *more: str) -> ManagedProcess:
        log = self._folder / f"run-{len(self._runs)}.log"
        # A process that was started warm has a child that forks others, and is no part of the run.
        cold = dict(os.environ) | {warm_start.COLD: "1"}
        self._runs.append(ManagedProcess([*self._command, *more], cold, log))
        return self._runs[-1]
