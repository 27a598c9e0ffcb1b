"""The supervisor of a fault drill's processes: a coordinator behind a proxy, a driver with its workers.

Invariant: every process has ended when the supervisor is left, and ends soon where the drill is killed.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import psutil

from twopc import events
from twopc.config import RunSettings
from twopc.faults.armed_faults import ArmedFault, armed
from twopc.faults.driver import decode
from twopc.faults.points import VARIABLE
from twopc.faults.process import PATIENCE_SECONDS, ManagedProcess, start_coordinator
from twopc.faults.tcp_proxy import Proxy
from twopc.storage.scratch_folder import CHECKPOINTS
from twopc.testing.ports import free_port


class Supervisor:
    """Enter it, and a coordinator listens; `keep_running` starts each process that is missing."""

    def __init__(
        self, folder: Path, servers: str, job_file: str, settings: RunSettings, arms: Sequence[ArmedFault]
    ) -> None:
        self.folder = folder
        self.checkpoint_dir = folder / CHECKPOINTS
        self.drivers: list[ManagedProcess] = []
        self.coordinators: list[ManagedProcess] = []
        self._servers = servers
        self._job_file = job_file
        self._settings = settings
        self._arms = tuple(arms)
        self._events = folder / "events.jsonl"
        self._read = 0
        self._port = free_port()
        self._running = ExitStack()
        self.control: Proxy

    def __enter__(self) -> Supervisor:
        (self.folder / "tmp").mkdir()
        try:
            self._start_coordinator()
            self.control = self._running.enter_context(Proxy(self._port))
        except BaseException:
            self._running.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    @property
    def driver(self) -> ManagedProcess | None:
        """The driver that runs now."""
        return next((each for each in self.drivers if each.exit_code is None), None)

    @property
    def coordinator(self) -> ManagedProcess:
        return self.coordinators[-1]

    def keep_running(self) -> None:
        """Start again each process that has ended, as an operator, or a service manager, would."""
        if self.coordinator.exit_code is not None:
            self._start_coordinator()
        if self.driver is None:
            self._start_driver()

    def kill(self, process: ManagedProcess | None) -> None:
        """End a process as a crash does; a driver's workers end with it."""
        if process is not None:
            process.send(signal.SIGKILL)
            process.wait()

    def limit_files(self, pid: int, size_bytes: int | None) -> bool:
        """Let no file of a process grow beyond this, or let them again; return whether it is there."""
        try:
            running = psutil.Process(pid)
            _, hard = running.rlimit(resource.RLIMIT_FSIZE)
            running.rlimit(resource.RLIMIT_FSIZE, (hard if size_bytes is None else size_bytes, hard))
        except psutil.NoSuchProcess:
            return False
        return True

    def all_events(self) -> Iterator[events.Event]:
        """Yield all that the drivers were told so far."""
        if self._events.exists():
            lines = self._events.read_text().splitlines(keepends=True)
            yield from (decode(line) for line in lines if line.endswith("\n"))

    def new_events(self) -> Iterator[events.Event]:
        """Yield what the drivers were told since the last call."""
        if not self._events.exists():
            return
        with self._events.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                yield decode(line.decode())

    def _start_coordinator(self) -> None:
        started = start_coordinator(
            self.checkpoint_dir, self._port, self.environment(), self._log("coordinator", len(self.coordinators))
        )
        self.coordinators.append(self._running.enter_context(started))

    def _start_driver(self) -> None:
        command = [sys.executable, "-P", "-m", "twopc.faults.driver", self._job_file, str(self._events)]
        environment = self.environment() | {"TWOPC_COORDINATOR": f"127.0.0.1:{self.control.port}"}
        started = ManagedProcess(command, environment, self._log("driver", len(self.drivers)), PATIENCE_SECONDS)
        self.drivers.append(self._running.enter_context(started))

    def _log(self, kind: str, number: int) -> Path:
        return self.folder / f"{kind}-{number}.log"

    def environment(self) -> dict[str, str]:
        """The environment of every process of the drill: nothing that the real job listens on or dials is in it."""
        of_the_real_job = ("TWOPC_COORDINATOR", "TWOPC_METRICS_", "TWOPC_TRACES")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(of_the_real_job)}
        environment |= {
            "TMPDIR": str(self.folder / "tmp"),
            "TWOPC_BOOTSTRAP_SERVERS": self._servers,
            "TWOPC_KAFKA_CONFIG": self._settings.kafka_config,
            "TWOPC_CHECKPOINT_DIR": str(self.checkpoint_dir),
            "TWOPC_PARALLELISM": str(self._settings.parallelism),
            "TWOPC_CHECKPOINT_INTERVAL": f"{self._settings.checkpoint_interval_ms}ms",
            "TWOPC_CHECKPOINT_TIMEOUT": "10s",
            # Small state would have no files, and several faults strike those.
            "TWOPC_CHECKPOINT_INLINE_BYTES": "0",
            "TWOPC_RESTART_ATTEMPTS": "20",
            "TWOPC_RESTART_DELAY": "50ms",
            "TWOPC_RESTART_DELAY_MAX": "500ms",
            VARIABLE: armed(self._arms, self.folder),
        }
        return environment
