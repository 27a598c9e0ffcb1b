"""The processes of a soak: broker, coordinator, driver and workers, which can be hurt, and are started again."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil

from tests.leak_audit.processes import marked_processes
from tests.timed_faults import Action, Target, TimedFault
from twopc.faults.process import ManagedProcess
from twopc.faults.reversals import Reversals
from twopc.testing.local_broker import LocalBroker
from twopc.testing.ports import free_port

JOB_FILE = Path(__file__).with_name("job.py")
PARALLELISM = 2
VARIABLE = "SOAK_JOB"
#: What a supervisor would answer with another start: the driver gave up on a broker or coordinator that was away.
STARTED_AGAIN = {0, 1, -signal.SIGKILL, -signal.SIGTERM}


class Processes:
    """Runs `twopc run` as a supervisor does: whenever it ends early, the same command is given again."""

    def __init__(self, broker: LocalBroker, folder: Path, job: str) -> None:
        self.broker = broker
        self.job = job
        self.checkpoint_dir = folder / "checkpoints"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.until_end = False
        self.report: dict[str, object] | None = None
        self.exits: Counter[int] = Counter()
        self._folder = folder
        self._started = 0
        self._address = f"127.0.0.1:{free_port()}"
        self._environment = {
            **os.environ,
            VARIABLE: job,
            "TMPDIR": str(self.temporary),
            "TWOPC_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
            "TWOPC_CHECKPOINT_DIR": str(self.checkpoint_dir),
            "TWOPC_COORDINATOR": self._address,
            "TWOPC_CHECKPOINT_INTERVAL": "400ms",
            "TWOPC_CHECKPOINT_TIMEOUT": "5s",
            "TWOPC_RESTART_ATTEMPTS": "1000",
            "TWOPC_RESTART_DELAY": "200ms",
            "TWOPC_RESTART_DELAY_MAX": "2s",
        }
        self._coordinator: ManagedProcess | None = None
        self._coordinator_due = 0.0
        self._starter: threading.Thread | None = None
        self._driver: ManagedProcess | None = None
        self._lasting = Reversals()

    def tend(self) -> None:
        """Wake whose time has come, and start what is not there."""
        self._lasting.run()
        if not _runs(self._coordinator) and self._coordinator_due <= time.monotonic():
            command = ("coordinator", "start", "--checkpoint-dir", str(self.checkpoint_dir), "--address", self._address)
            self._coordinator = self._start(*command)
        if self.report is None and not _runs(self._driver):
            self._drive()

    def hurt(self, step: TimedFault) -> None:
        """Do to whom what the step says."""
        victim = self._victim(step)
        if victim is None:
            return
        if step.target is Target.BROKER and step.action is not Action.PAUSE:
            self._end_broker(step)
            return
        match step.action:
            case Action.KILL:
                _send(victim, signal.SIGKILL)
            case Action.TERMINATE:
                _send(victim, signal.SIGTERM)
            case Action.PAUSE:
                self._pause(victim, step.seconds)
            case Action.ZOMBIE:
                self._pause(victim, step.seconds)
                if self._driver is not None:
                    self._driver.kill()
        if step.target is Target.COORDINATOR:
            self._coordinator_due = time.monotonic() + min(step.seconds, 2.0)

    def stop_in_order(self) -> None:
        """From now on the job runs to the end of its input."""
        self.until_end = True
        if self._driver is not None:
            self._driver.send(signal.SIGTERM)

    def heal(self) -> None:
        """No more faults: everybody is awake, and comes back at once."""
        self._lasting.run(everything=True)
        self._coordinator_due = 0.0

    def end_coordinator(self) -> None:
        """End it in order, once the job has finished."""
        if self._coordinator is not None:
            self._coordinator.send(signal.SIGTERM)
            self._coordinator.wait()

    def close(self) -> None:
        """Leave nothing running, however the soak ended."""
        if self._starter is not None:
            self._starter.join()
        for process in marked_processes(VARIABLE, self.job):
            _send(process, signal.SIGKILL)
        for child in (self._driver, self._coordinator):
            if child is not None:
                child.wait()

    def _drive(self) -> None:
        if self._driver is not None:
            code = self._driver.exit_code
            assert code in STARTED_AGAIN, f"twopc run exited with {code}: {self._driver.last_words()}"
            self.exits[code] += 1
            if self.until_end and code == 0 and self._driver.output and self._driver.has_finished_job:
                self.report = self._driver.finish()
                return
        end = ("--until-end",) if self.until_end else ()
        self._driver = self._start(
            "run", str(JOB_FILE), "--host", "process", "-p", str(PARALLELISM), "-o", "json", *end
        )

    def _start(self, command: str, *arguments: str) -> ManagedProcess:
        self._started += 1
        log = self._folder / f"{self._started}-{command}.log"
        return ManagedProcess([sys.executable, "-m", "twopc", command, *arguments], self._environment, log)

    def _victim(self, step: TimedFault) -> psutil.Process | None:
        if step.target is Target.BROKER:
            pid = self.broker.nodes[0].pid
        elif step.target is Target.WORKER:
            workers = self._workers()
            pid = workers[step.choice % len(workers)].pid if workers else None
        else:
            child = self._driver if step.target is Target.DRIVER else self._coordinator
            pid = child.pid if child is not None and _runs(child) else None
        with suppress(psutil.NoSuchProcess):
            return None if pid is None else psutil.Process(pid)
        return None

    def _workers(self) -> list[psutil.Process]:
        found = []
        for process in marked_processes(VARIABLE, self.job):
            with suppress(psutil.Error):
                if "twopc.worker" in process.cmdline():
                    found.append(process)
        return sorted(found, key=lambda process: process.pid)

    def _end_broker(self, step: TimedFault) -> None:
        if self._starter is not None and self._starter.is_alive():
            return
        end = self.broker.kill if step.action is Action.KILL else self.broker.stop
        end()
        self._lasting.after(min(step.seconds, 1.0), self._start_broker)

    def _start_broker(self) -> None:
        self._starter = threading.Thread(target=self.broker.start, name="soak-broker")
        self._starter.start()

    def _pause(self, process: psutil.Process, seconds: float) -> None:
        _send(process, signal.SIGSTOP)
        self._lasting.after(seconds, lambda: _send(process, signal.SIGCONT))


def _runs(process: ManagedProcess | None) -> bool:
    return process is not None and process.exit_code is None


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
