"""Runs the drill job as a user would, in processes that can be killed, and judges what it left behind from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from confluent_kafka import Consumer, TopicPartition

from twopc.checkpoints import read_job
from twopc.crashpoints import VARIABLE, CrashPoint
from twopc.kafka.wire import ControlClient
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import TopicPartition as Partition
from twopc.protocol.recovery import BrokerState
from twopc.state.keyed import KeyedState
from twopc.state.restore import restore_state
from twopc.state.storage import CheckpointStorage
from twopc.testing.topics import Write, create_topic, produce, read_topic

JOB_FILE = Path(__file__).with_name("jobs.py")
PARTITIONS = 2
KEYS = 13
TIMEOUT_SECONDS = 90.0
LEAK_SECONDS = 20.0
SETTLED = {BrokerState.EMPTY, BrokerState.COMPLETE_COMMIT, BrokerState.COMPLETE_ABORT}


@dataclass
class Drill:
    """One job on topics and a checkpoint folder of its own."""

    bootstrap_servers: str
    folder: Path
    job: str
    records: int = 4_000
    host: str = "process"
    environment: dict[str, str] = field(default_factory=dict)
    parallelism: int = PARTITIONS
    master: str = f"local[{PARTITIONS}]"

    @property
    def input(self) -> str:
        return f"{self.job}-in"

    @property
    def output(self) -> str:
        return f"{self.job}-out"

    @property
    def checkpoint_dir(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def once(self) -> Path:
        """The file that says a crash point was reached, and by which process."""
        return self.folder / "reached"

    def load(self) -> None:
        """Create the topics, and fill the input: every key in one partition, numbered within it."""
        for topic in (self.input, self.output):
            create_topic(self.bootstrap_servers, topic, PARTITIONS)
        produce(
            self.bootstrap_servers,
            self.input,
            (
                Write(b"%d" % number, key=b"k%d" % (number % KEYS), partition=number % KEYS % PARTITIONS)
                for number in range(self.records)
            ),
        )

    def start(self, crash: str | None = None) -> subprocess.Popen[bytes]:
        """Start `twopc run --until-end`; always the same command. `crash` arms a crash point in it or its children."""
        environment = (
            os.environ
            | self.environment
            | {
                "DRILL_JOB": self.job,
                "DRILL_INPUT": self.input,
                "DRILL_OUTPUT": self.output,
            }
        )
        environment.pop(VARIABLE, None)
        if crash is not None:
            environment[VARIABLE] = f"{crash},once={self.once}"
        command = [
            *(sys.executable, "-m", "twopc", "run", str(JOB_FILE), "--bootstrap-servers", self.bootstrap_servers),
            *("--checkpoint-dir", str(self.checkpoint_dir), "--parallelism", str(self.parallelism)),
            *("--checkpoint-interval", "150ms", "--host", self.host, "--master", self.master),
            *("--until-end", "--output", "json"),
        ]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True)

    def finish(self, process: subprocess.Popen[bytes]) -> dict[str, object]:
        """Wait for a clean end; return the report."""
        output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
        assert process.returncode == 0, f"twopc run exited with {process.returncode}"
        report = json.loads(output)
        assert isinstance(report, dict)
        return report

    def wait_until_reached(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for the armed crash point; return the process id that is held there."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            if self.once.exists() and (text := self.once.read_text()).endswith("\n"):
                return int(text)
            if process.poll() is not None:
                process.communicate()
                raise AssertionError("the job ended before it reached the crash point")
            time.sleep(0.01)
        raise AssertionError("the crash point was never reached")

    def release(self) -> None:
        """Let go of whoever is held at the crash point."""
        self.once.with_name(self.once.name + ".release").touch()

    def judge(self) -> None:
        """Compare output, keyed state, positions and transactions with what the input says they must be."""
        self._judge_output()
        self._judge_state()
        self._judge_positions()
        self.judge_transactions()
        self._judge_processes()

    def _expected(self) -> dict[bytes, list[bytes]]:
        expected: dict[bytes, list[bytes]] = defaultdict(list)
        for number in range(self.records):
            values = expected[b"k%d" % (number % KEYS)]
            values.append(b"%d:%d" % (number, len(values) + 1))
        return expected

    def _newest(self) -> CheckpointMetadata:
        metadata = read_job(self.checkpoint_dir, self.job).completed[-1].metadata
        assert metadata is not None, "the newest checkpoint is damaged"
        return metadata

    def _judge_output(self) -> None:
        found: dict[bytes, list[bytes]] = defaultdict(list)
        for record in read_topic(self.bootstrap_servers, self.output):
            assert record.key is not None
            assert record.value is not None
            found[record.key].append(record.value)
        expected = self._expected()
        for key in sorted(expected):
            assert found[key] == expected[key], f"the output of key {key!r} is not the input's, in order, once each"
        assert set(found) == set(expected)

    def _judge_state(self) -> None:
        metadata = self._newest()
        storage = CheckpointStorage(self.checkpoint_dir / self.job)
        partitions = [Partition(self.input, number) for number in range(PARTITIONS)]
        for subtask in range(PARTITIONS):
            work = self.folder / f"judge-{subtask}"
            work.mkdir()
            backend = restore_state(storage, metadata.snapshots, partitions, metadata.snapshots[subtask].subtask, work)
            try:
                keys = [(Partition(self.input, number % PARTITIONS), b"k%d" % number) for number in range(KEYS)]
                counts = KeyedState(backend).get_many("count", keys)
            finally:
                backend.close()
            expected = self._expected()
            assert counts == [b"%d" % len(expected[key]) for _, key in keys], "the keyed state disagrees with the input"

    def _judge_positions(self) -> None:
        per_partition = [0] * PARTITIONS
        for number in range(self.records):
            per_partition[number % KEYS % PARTITIONS] += 1
        metadata = self._newest()
        positions = {item.partition.partition: item.position for item in metadata.positions}
        assert positions == dict(enumerate(per_partition)), "the restored positions are not the end of the input"
        consumer = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": self.job})
        try:
            wanted = [TopicPartition(self.input, number) for number in range(PARTITIONS)]
            offsets = {item.partition: item.offset for item in consumer.committed(wanted, timeout=10)}
        finally:
            consumer.close()
        assert offsets == positions, f"the group's offsets {offsets} are not the checkpoint's positions {positions}"

    def judge_transactions(self) -> None:
        with ControlClient(self.bootstrap_servers, {}) as client:
            states = client.list_transactions()
        unfinished = {
            name: state.value for name, state in states.items() if name.startswith(self.job) and state not in SETTLED
        }
        assert not unfinished, f"transactions left open: {unfinished}"

    def _judge_processes(self) -> None:
        deadline = time.monotonic() + LEAK_SECONDS
        while left := _processes_of(self.job):
            assert time.monotonic() < deadline, f"processes left behind: {left}"
            time.sleep(0.1)


def _processes_of(job: str) -> list[str]:
    """Every process that inherited the drill's environment, and still runs."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("DRILL_JOB") == job:
                found.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
    return found


def crash_at(point: CrashPoint, *, checkpoint: int = 5, subtask: int = 0, hold: bool = False) -> str:
    """The armed form of a crash point, without its file."""
    return f"{point.name},checkpoint={checkpoint},subtask={subtask}" + (",hold" if hold else "")
