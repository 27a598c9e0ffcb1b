"""The processes of a soak: broker, coordinator, driver and workers, which can be hurt, and are started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil

from tests.leak_audit.processes import marked_processes
from tests.soak.plan import Action, Step, Target
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
        self.log = folder / "processes.log"
        self.until_end = False
        self.report: dict[str, object] | None = None
        self.exits: Counter[int] = Counter()
        self._reports = folder / "reports"
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
        self._coordinator: subprocess.Popen[bytes] | None = None
        self._coordinator_due = 0.0
        self._broker_due: float | None = None
        self._starter: threading.Thread | None = None
        self._driver: subprocess.Popen[bytes] | None = None
        self._asleep: list[tuple[float, psutil.Process]] = []

    def tend(self) -> None:
        """Wake whose time has come, and start what is not there."""
        now = time.monotonic()
        for due, process in [each for each in self._asleep if each[0] <= now]:
            self._asleep.remove((due, process))
            _send(process, signal.SIGCONT)
        if self._broker_due is not None and self._broker_due <= now:
            self._broker_due = None
            self._starter = threading.Thread(target=self.broker.start, name="soak-broker")
            self._starter.start()
        if (self._coordinator is None or self._coordinator.poll() is not None) and self._coordinator_due <= now:
            self._coordinator = self._start(
                "-m",
                "twopc",
                "coordinator",
                "start",
                "--checkpoint-dir",
                str(self.checkpoint_dir),
                "--address",
                self._address,
            )
        if self.report is None and (self._driver is None or self._driver.poll() is not None):
            self._drive()

    def hurt(self, step: Step) -> None:
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
            self._driver.terminate()

    def heal(self) -> None:
        """No more faults: everybody is awake, and comes back at once."""
        self._asleep = [(0.0, process) for _, process in self._asleep]
        self._coordinator_due = 0.0
        if self._broker_due is not None:
            self._broker_due = 0.0

    def end_coordinator(self) -> None:
        """End it in order, once the job has finished."""
        if self._coordinator is not None:
            self._coordinator.terminate()
            self._coordinator.wait(20)

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
            code = self._driver.returncode
            self.exits[code] += 1
            assert code in STARTED_AGAIN, f"twopc run exited with {code}: see {self.log}"
            said = self._reports.read_bytes() if code == 0 else b""
            report = json.loads(said) if said else None
            if self.until_end and report is not None and not report["stopped"]:
                self.report = report
                return
        end = ("--until-end",) if self.until_end else ()
        self._driver = self._start(
            *("-m", "twopc", "run", str(JOB_FILE), "--host", "process", "-p", str(PARALLELISM), "-o", "json", *end)
        )

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log, self._reports.open("wb") as out:
            return subprocess.Popen(
                [sys.executable, *arguments],
                env=self._environment,
                stdout=out if "run" in arguments else log,
                stderr=log,
                start_new_session=True,
            )

    def _victim(self, step: Step) -> psutil.Process | None:
        if step.target is Target.BROKER:
            pid = self.broker.nodes[0].pid
        elif step.target is Target.WORKER:
            workers = self._workers()
            pid = workers[step.choice % len(workers)].pid if workers else None
        else:
            child = self._driver if step.target is Target.DRIVER else self._coordinator
            pid = child.pid if child is not None and child.poll() is None else None
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

    def _end_broker(self, step: Step) -> None:
        if self._starter is not None and self._starter.is_alive():
            return
        end = self.broker.kill if step.action is Action.KILL else self.broker.stop
        end()
        self._broker_due = time.monotonic() + min(step.seconds, 1.0)

    def _pause(self, process: psutil.Process, seconds: float) -> None:
        _send(process, signal.SIGSTOP)
        self._asleep.append((time.monotonic() + seconds, process))


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
