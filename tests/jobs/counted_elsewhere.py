"""A job that counts, whose checkpoints are in a store that is no folder: run, struck, and judged."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tests.jobs.cli import CommandResult, twopc
from tests.jobs.counted_job import counts_by_key
from tests.jobs.slow_job import COUNT, SLOWLY
from twopc.faults.armed_faults import ArmedFault, armed
from twopc.faults.points import VARIABLE
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

KEYS, RECORDS, PARTITIONS = 5, 2_000, 4

JOB = (
    f"{SLOWLY.format(seconds=0.003)}{COUNT}"
    + """
from twopc import Job, Json, KafkaSink, KafkaSource

name = os.environ["JOB_NAME"]
job = Job(name)
counts = job.source(KafkaSource(f"{name}-in")).map(slowly).stateful_map(count, name="seen")
counts.sink(KafkaSink(f"{name}-counts", value=Json()))
"""
)


class Played:
    """The job, its topics and its place in the store; `access` is the environment that the store needs."""

    def __init__(
        self,
        broker: Broker,
        url: str,
        name: str,
        folder: Path,
        *,
        access: Mapping[str, str] | None = None,
        secrets: Collection[str] = (),
    ) -> None:
        self.name, self.servers, self.folder = name, broker.bootstrap_servers, folder
        self.where = ("--checkpoint-dir", url)
        self.access = dict(access or {})
        self._secrets = secrets
        self.printed = ""
        self._given = 0
        create_topic(self.servers, f"{name}-in", PARTITIONS)
        create_topic(self.servers, f"{name}-counts", 1)
        (folder / "job.py").write_text(JOB)

    def give(self) -> None:
        numbers = range(self._given, self._given + RECORDS)
        keys = ((b"k%d" % (number % KEYS), number % KEYS % PARTITIONS) for number in numbers)
        produce(self.servers, f"{self.name}-in", (Write(b"x", key=key, partition=partition) for key, partition in keys))
        self._given += RECORDS

    def run(self, *arms: ArmedFault, struck: Path | None = None) -> CommandResult:
        until = struck or (arms[-1].once(self.folder) if arms else self.folder)
        finished = self.tool(
            *("run", str(self.folder / "job.py"), "-b", self.servers, "-p", "2", "--checkpoint-interval", "200ms"),
            *("--host", "process", "--until-end", "-o", "json"),
            JOB_NAME=self.name,
            STRUCK=str(until),
            TWOPC_CHECKPOINT_INLINE_BYTES="0",
            **{VARIABLE: armed(arms, self.folder)},
        )
        assert all(arm.has_happened(self.folder) for arm in arms)
        return finished

    def drill(self, reference: str) -> CommandResult:
        """Practise the recovery from this checkpoint, with a copy of it."""
        common = (str(self.folder / "job.py"), "-b", self.servers, "--host", "process", "--from", reference)
        return self.tool("drill", *common, JOB_NAME=self.name, STRUCK=str(self.folder))

    def tool(self, *arguments: str, **environment: str) -> CommandResult:
        finished = twopc(*arguments, *self.where, **self.access, **environment)
        self.printed += finished.out + finished.err
        return finished

    def ask(self, *arguments: str) -> Any:
        finished = self.tool(*arguments, "-o", "json")
        assert finished.code == 0, finished.err
        return json.loads(finished.out)

    def require_exact(self) -> None:
        """Each key was counted through, once; and its state says so."""
        counts = counts_by_key(self.servers, f"{self.name}-counts")
        each = self._given // KEYS
        assert counts == {b"k%d" % key: list(range(1, each + 1)) for key in range(KEYS)}
        states = self.ask("state", "scan", "latest", "seen")
        assert {row["key"]: row["value"] for row in states} == {f"k{key}": each for key in range(KEYS)}
        assert [found["findings"] for found in self.ask("checkpoints", "verify")] == [[]]
        assert not any(secret in self.printed for secret in self._secrets)
