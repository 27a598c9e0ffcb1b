"""A job that counts by key, which runs while a test does something to it; and what it has to put out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.jobs.cli import CommandResult, twopc
from twopc.faults.process import await_true
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

KEYS, PARTITIONS, RECORDS = 7, 4, 700
PATIENCE_SECONDS = 300.0

JOB = """
from twopc import Job, Json, KafkaSink, KafkaSource

job = Job("{name}")
counted = job.source(KafkaSource("{name}-in")).stateful_map(lambda n, _: ((n or 0) + 1, (n or 0) + 1), name="count")
counted.sink(KafkaSink("{name}-out", value=Json()))
"""


class CountedJob:
    """The job, and how many records it was given."""

    def __init__(self, broker: Broker, name: str, folder: Path) -> None:
        self.name, self.servers, self.folder = name, broker.bootstrap_servers, folder
        self.given = 0
        create_topic(self.servers, f"{name}-in", PARTITIONS)
        create_topic(self.servers, f"{name}-out", 1)
        (folder / "job.py").write_text(JOB.format(name=name))
        self._where = ("--checkpoint-dir", str(folder / "checkpoints"))

    def give(self) -> None:
        numbers = range(self.given, self.given + RECORDS)
        self.given += RECORDS
        produce(
            self.servers,
            f"{self.name}-in",
            [Write(b"", key=b"k%d" % (n % KEYS), partition=n % KEYS % PARTITIONS) for n in numbers],
        )

    @contextmanager
    def running(self, *options: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
        command = ("run", str(self.folder / "job.py"), "-b", self.servers, *self._where, *options)
        with (self.folder / "log").open("a") as log:
            run = subprocess.Popen(
                [sys.executable, "-m", "twopc", *command, "--checkpoint-interval", "200ms"],
                stderr=log,
                stdout=log,
                env=os.environ | environment,
            )
            try:
                await_true(lambda: self.shown()["phase"] == "running", "it does not run", PATIENCE_SECONDS)
                yield run
            finally:
                run.kill()
                run.wait()

    def shown(self) -> dict[str, Any]:
        answer = twopc("jobs", "show", self.name, *self._where, "-o", "json")
        shown: dict[str, Any] = json.loads(answer.out) if answer.code == 0 else {"phase": answer.err}
        return shown

    def rescale(self, parallelism: int) -> CommandResult:
        return twopc("jobs", "rescale", self.name, "-p", str(parallelism), *self._where, "-o", "json")

    def stop(self, run: subprocess.Popen[bytes]) -> None:
        stopped = twopc("stop", self.name, "--drain", *self._where)
        assert stopped.code == 0, stopped.err
        assert run.wait(PATIENCE_SECONDS) == 0, self.log

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def counts(self) -> dict[bytes, list[int]]:
        return counts_by_key(self.servers, f"{self.name}-out")

    def expected(self) -> dict[bytes, list[int]]:
        return {b"k%d" % key: list(range(1, len(range(key, self.given, KEYS)) + 1)) for key in range(KEYS)}


def counts_by_key(servers: str, topic: str) -> dict[bytes, list[int]]:
    """Return the counts of each key that a read_committed reader sees, as they come."""
    counts: dict[bytes, list[int]] = {}
    for record in read_topic(servers, topic):
        counts.setdefault(record.key or b"", []).append(int(record.value or 0))
    return counts
