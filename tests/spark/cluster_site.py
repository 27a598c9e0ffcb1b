"""A job on a standalone cluster, and what it needs beside it: a broker's topics, its files, a coordinator for all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.spark.cluster import SparkCluster
from twopc.testing.broker import Broker
from twopc.testing.ports import free_port
from twopc.testing.topics import Write, create_topic, produce, read_topic

RECORDS = 3000
PATIENCE_SECONDS = 300.0

JOB = """
import time
from twopc import Job, KafkaSink, KafkaSource

def slowly(value):
    time.sleep(0.004)
    return value.upper() + b"!"

job = Job({name!r})
job.source(KafkaSource({name!r} + "-in")).map(slowly).sink(KafkaSink({name!r} + "-out"))

if __name__ == "__main__":
    job.run(parallelism=2, until_end=True)
"""

EXACT = Counter(b"A%d!" % number for number in range(RECORDS))


class Run:
    """A driver in a process of its own, whose words are in a file."""

    def __init__(self, folder: Path, *command: str, **environment: str) -> None:
        self._said = folder / f"said-{time.monotonic_ns()}"
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                command, stdout=said, stderr=said, env=os.environ | environment, cwd=folder, start_new_session=True
            )

    @property
    def said(self) -> str:
        return self._said.read_text(errors="replace")

    def await_word(self, word: str) -> None:
        self.await_true(lambda: word in self.said, f"{word!r} was not said")

    def await_true(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert self._process.poll() is None, f"ended with {self._process.poll()}: {self.said}"
            assert time.monotonic() < deadline, f"{otherwise}: {self.said}"
            time.sleep(0.1)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def code(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for the end."""
        return self._process.wait(seconds)

    def end(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Site:
    """The surroundings of a job on a cluster: a broker with its topics, its files, a coordinator for all machines."""

    def __init__(self, broker: Broker, cluster: SparkCluster, name: str, folder: Path) -> None:
        self._broker = broker
        self._cluster = cluster
        self.name = name
        self.folder = folder
        self.job = folder / "job.py"
        self.job.write_text(JOB.format(name=name))
        self._coordinator = f"127.0.0.1:{free_port()}"
        for suffix in ("in", "out"):
            create_topic(broker.bootstrap_servers, f"{name}-{suffix}", 2)
        produce(broker.bootstrap_servers, f"{name}-in", (Write(b"a%d" % number) for number in range(RECORDS)))

    @contextmanager
    def started(self, *command: str, **environment: str) -> Iterator[Run]:
        """Run a command of the driver, and a coordinator for it, until the context ends."""
        folder = str(self.folder / "checkpoints")
        address = ("--checkpoint-dir", folder, "--address", self._coordinator)
        coordinator = Run(self.folder, sys.executable, "-m", "twopc", "coordinator", "start", *address)
        settings = {
            "TWOPC_BOOTSTRAP_SERVERS": self._broker.bootstrap_servers,
            "TWOPC_CHECKPOINT_DIR": folder,
            "TWOPC_COORDINATOR": self._coordinator,
        }
        coordinator.await_word(self._coordinator)
        run = Run(self.folder, *command, **settings, **self._cluster.environment(), **environment)
        try:
            yield run
        finally:
            run.end()
            coordinator.end()

    def twopc_run(self, *arguments: str, parallelism: int = 2) -> list[str]:
        options = ("--master", self._cluster.url, "-p", str(parallelism))
        return [sys.executable, "-m", "twopc", "run", str(self.job), *options, *arguments]

    def output(self) -> Counter[bytes]:
        records = read_topic(self._broker.bootstrap_servers, f"{self.name}-out")
        return Counter(record.value for record in records if record.value is not None)
