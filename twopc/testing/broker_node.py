"""One node of a local broker: a folder, and at most one Kafka process that works on it.

The folder holds server.properties, the pid file, broker.log and Kafka's data.

Invariant: a process is only ever signalled when it has both the id and the start time that the pid file names. A pid
file that outlived its process, and a pid that now belongs to someone else, count for nothing. (The command line is no
witness: under load it reads as empty now and then.)
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psutil

from twopc.errors import ConfigurationError

STOP_TIMEOUT_S = 30
KILL_TIMEOUT_S = 30
FORMAT_TIMEOUT_S = 120
#: A start time is told from when the machine started, which moves a little as its clock is corrected.
_CLOCK_TOLERANCE_S = 2.0


class BrokerNode:
    """Starts and ends the Kafka process of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "broker.log"
        self.data = folder / "data"
        self._properties = folder / "server.properties"
        self._pid_file = folder / "pid"
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """The id of the running process; None when there is none."""
        process = self._process()
        return process.pid if process else None

    def configure(self, properties: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._properties.write_text(properties)

    def format(self, java: Sequence[str], cluster_id: str, transaction_version: int) -> None:
        """Prepare the data folder for its first start; nothing changes where that was done."""
        if (self.data / "meta.properties").exists():
            return
        tool = [*java, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(self._properties)]
        command = [*tool, "--feature", f"transaction.version={transaction_version}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=FORMAT_TIMEOUT_S, check=False)
        if done.returncode != 0:
            reason = (done.stderr or done.stdout).strip().splitlines()
            raise ConfigurationError(
                f"{self.data} can't be prepared for Kafka: {reason[-1] if reason else 'no reason'}"
            )

    def spawn(self, java: Sequence[str]) -> None:
        """Start Kafka in a session of its own, so that it outlives this process and its terminal's Ctrl-C."""
        command = [*java, "kafka.Kafka", str(self._properties)]
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        pid = os.posix_spawn(
            command[0],
            command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(self.log), append, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
        self._pid_file.write_text(f"{pid} {psutil.Process(pid).create_time()}\n")

    def terminate(self) -> None:
        """End Kafka in order; by force when that takes too long."""
        self._end(signal.SIGTERM, STOP_TIMEOUT_S)
        self.kill()

    def kill(self) -> None:
        """End Kafka as a power cut would, as far as it is concerned."""
        self._end(signal.SIGKILL, KILL_TIMEOUT_S)

    def complaint(self) -> str:
        """The first line since the last start that says why Kafka ended, as well as can be told."""
        log = self.log.read_bytes()[self._log_start :] if self.log.exists() else b""
        lines = log.decode(errors="replace").splitlines()
        telling = [line for line in lines if "Exception" in line or "ERROR" in line or "FATAL" in line]
        return (telling or lines or ["its log is empty"])[0].strip()

    def _end(self, number: signal.Signals, timeout_s: float) -> None:
        process = self._process()
        if process is None:
            return
        try:
            process.send_signal(number)
            process.wait(timeout_s)
        except (psutil.NoSuchProcess, psutil.TimeoutExpired):
            return

    def _process(self) -> psutil.Process | None:
        try:
            pid, created = self._pid_file.read_text().split()
            process = psutil.Process(int(pid))
            ours = abs(process.create_time() - float(created)) < _CLOCK_TOLERANCE_S
            return process if ours and process.status() != psutil.STATUS_ZOMBIE else None
        except (OSError, ValueError, psutil.NoSuchProcess, psutil.AccessDenied):
            return None
