"""A standalone Spark cluster on loopback: a master and workers, from pip's pyspark, each a process of its own.

The workers are as separate as on machines of their own, but for the machine: executors are their children, share no
memory, environment or working folder with the driver, and can be killed one by one. `environment()` is what a driver
needs to be a small one, and to listen on loopback only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.request import ProxyHandler, build_opener

import psutil

from twopc.errors import Unavailable
from twopc.java import find_java
from twopc.spark_home import spark_home
from twopc.testing.broker_settings import LOOPBACK
from twopc.testing.daemon import STOP_SECONDS, Daemon, inherited_environment
from twopc.testing.ports import free_port

READY_SECONDS = 180.0
_POLL_SECONDS = 0.1
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_DEFAULTS = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
}


class SparkDaemon(Daemon):
    """A master or a worker, which says on a page of its own how it is."""

    def __init__(
        self, folder: Path, kind: str, port: int, environment: Mapping[str, str], within: Sequence[str] = ()
    ) -> None:
        super().__init__(folder, environment)
        self.port = port
        self.page_port = free_port([port])
        self._kind = kind
        self._within = within

    def start(self, *arguments: str) -> None:
        command = [*self._within, str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{self._kind}"]
        command += ["--host", LOOPBACK, "--port", str(self.port), "--webui-port", str(self.page_port), *arguments]
        self._begin(command)

    @property
    def process(self) -> psutil.Process:
        """The running process."""
        if self.pid is None:
            raise Unavailable(f"{self._kind} does not run: see {self.log}")
        return psutil.Process(self.pid)

    def stop(self) -> None:
        """End the process and all that it started."""
        if self.pid is None:
            return
        own = self.process
        family = own.children(recursive=True)
        own.terminate()
        psutil.wait_procs([own], STOP_SECONDS)
        self.kill()
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()


class SparkCluster:
    """A master and its workers, with one slot for each core of a worker; ended when its context is left.

    `recovery` has the master keep its applications in its folder, and know them again when it comes back; without it,
    which is Spark's default, a master that was killed comes back without them.
    """

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 2,
        cores: int = 1,
        recovery: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self._cores = cores
        self._extra = dict(environment or {})
        self._ports: list[int] = []
        options = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
        if recovery:
            options += f" -Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory={folder / 'recovery'}"
        self._daemon_environment = inherited_environment() | {
            **self._extra,
            "JAVA_HOME": str(find_java().resolve().parent.parent),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": options,
        }
        self.master = self._daemon("master", "master.Master")
        self.workers = [self._daemon(f"worker-{index}", "worker.Worker") for index in range(workers)]

    @property
    def url(self) -> str:
        """What a driver names as its master."""
        return f"spark://{LOOPBACK}:{self.master.port}"

    def __enter__(self) -> Self:
        try:
            self.start_master()
            for worker in self.workers:
                self._start_worker(worker)
            self.await_slots(len(self.workers) * self._cores)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start_master(self) -> None:
        """Start the master, again after it was killed."""
        self.master.start()
        self._await(lambda: self.status() is not None, "the master did not start")

    def add_worker(self, *, within: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> SparkDaemon:
        """Start one more worker, and return when the master knows of it.

        `within` is a command that starts it, and gives its machine another view of the disk; its executors, and theirs,
        have what `environment` adds.
        """
        worker = self._daemon(f"worker-{len(self.workers)}", "worker.Worker", within, environment or {})
        self.workers.append(worker)
        self.start_worker(worker)
        return worker

    def status(self) -> dict[str, Any] | None:
        """What the master says of the cluster; None where it does not answer."""
        try:
            opener = build_opener(ProxyHandler({}))
            with opener.open(f"http://{LOOPBACK}:{self.master.page_port}/json/", timeout=10) as answer:
                said: dict[str, Any] = json.load(answer)
                return said
        except (OSError, ValueError):
            return None

    def await_slots(self, count: int) -> None:
        """Return when the workers that the master knows have so many cores together."""
        self._await(lambda: self._known_cores() >= count, f"the master does not know of {count} cores")

    def applications(self) -> list[str]:
        """The names of the applications that the master has seen, those that have ended too."""
        status = self.status() or {}
        return [str(each["name"]) for key in ("activeapps", "completedapps") for each in status.get(key, [])]

    def executors(self) -> list[psutil.Process]:
        """The executors that run now."""
        executors = []
        for worker in self.workers:
            with suppress(psutil.Error, Unavailable):
                family = worker.process.children(recursive=True)
                executors += [process for process in family if _has_word(process, _EXECUTOR)]
        return executors

    def environment(self) -> dict[str, str]:
        """What to add to the environment of a driver on this cluster."""
        conf = self.folder / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        (conf / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in _DEFAULTS.items()))
        return {**self._extra, "SPARK_CONF_DIR": str(conf), "SPARK_LOCAL_IP": LOOPBACK}

    def stop(self) -> None:
        for daemon in [*self.workers, self.master]:
            daemon.stop()

    def _daemon(
        self, name: str, kind: str, within: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> SparkDaemon:
        given = self._daemon_environment | dict(environment or {})
        daemon = SparkDaemon(self.folder / name, kind, free_port(self._ports), given, within)
        self._ports += [daemon.port, daemon.page_port]
        return daemon

    def start_worker(self, worker: SparkDaemon) -> None:
        """Start it, again after it was killed, and return when the master knows of it."""
        self._start_worker(worker)
        known = [each for each in self.workers if each.pid is not None]
        self._await(
            lambda: {each.port for each in known} <= self._known_ports(),
            f"the master does not know {worker.folder.name}",
        )

    def _start_worker(self, worker: SparkDaemon) -> None:
        work = worker.folder / "work"
        worker.start("--cores", str(self._cores), "--memory", f"{self._cores}g", "--work-dir", str(work), self.url)

    def _known_cores(self) -> int:
        return sum(int(worker["cores"]) for worker in self._alive())

    def _known_ports(self) -> set[int]:
        return {int(worker["port"]) for worker in self._alive()}

    def _alive(self) -> list[dict[str, Any]]:
        workers: list[dict[str, Any]] = (self.status() or {}).get("workers", [])
        return [worker for worker in workers if worker["state"] == "ALIVE"]

    def _await(self, condition: Any, otherwise: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise Unavailable(f"{otherwise} within {READY_SECONDS:.0f} s: see {self.folder}/*/log")
            time.sleep(_POLL_SECONDS)


def _has_word(process: psutil.Process, word: str) -> bool:
    try:
        return word in process.cmdline()
    except psutil.Error:
        return False
