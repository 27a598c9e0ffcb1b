"""A job with two key_bys in a row goes back to older checkpoints, forth, and back again: one count a key in the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from twopc.checkpoints.catalog import read_job
from twopc.kafka.positions.partition_position import partition_positions
from twopc.storage.local import LocalStore
from twopc.storage.store import has_ledger
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

KEYS, RECORDS = 6, 12_000
WAIT_SECONDS = 120.0

JOB = """
import os, time
from twopc import Job, Json, KafkaSink, KafkaSource

def slowly(value):
    if "SLOW" in os.environ:
        time.sleep(0.001)
    return value

def count(total, value):
    total = (total or 0) + 1
    return total, {**value, "n": total}

job = Job(name := os.environ["JOB_NAME"])
entered = job.source(KafkaSource(f"{name}-in", value=Json())).map(slowly)
by_id = entered.key_by(lambda value: value["id"], name="by-id").map(slowly).stateful_map(count, name="count")
by_parity = by_id.key_by(lambda value: value["id"] % 2, name="by-parity").stateful_map(count, name="parity")
by_parity.sink(KafkaSink(f"{name}-out", key=Json(), value=Json()))
"""


class BackAndForth:
    """The job, its topics and its folder, and how it is run."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.name, self.servers, self.folder = f"forth-{uuid.uuid4().hex[:6]}", broker.bootstrap_servers, folder
        (folder / "job.py").write_text(JOB)
        for suffix, partitions in {"in": 3, "out": 1}.items():
            create_topic(self.servers, f"{self.name}-{suffix}", partitions)
        produce(self.servers, f"{self.name}-in", (Write(b'{"id": %d}' % (n % KEYS)) for n in range(RECORDS)))

    def completed(self) -> list[int]:
        store = LocalStore(self.folder / "checkpoints")
        return [each.checkpoint_id for each in read_job(store, self.name).completed]

    def passed(self, checkpoint: int) -> int:
        """Return how many offsets the positions of a checkpoint pass over."""
        [found] = [
            each
            for each in read_job(LocalStore(self.folder / "checkpoints"), self.name).completed
            if each.checkpoint_id == checkpoint
        ]
        assert found.metadata is not None
        held = partition_positions(found.metadata.positions)
        return sum(end - max(first, each.position) for each in held for first, end in each.passed)

    def arguments(self, restore_from: int | None) -> list[str]:
        where = ["-b", self.servers, "--checkpoint-dir", str(self.folder / "checkpoints")]
        how = ["-p", "2", "--host", "process", "--checkpoint-interval", "150ms", "--checkpoints-retained", "200"]
        restored = [] if restore_from is None else ["--from", str(restore_from)]
        return ["run", str(self.folder / "job.py"), *where, *how, *restored]

    def run_until_killed(self, checkpoints: int, restore_from: int | None = None) -> list[int]:
        """Run it for so many completed checkpoints, kill all of it, and return them."""
        before = set(self.completed()) if restore_from is not None else set[int]()
        environment = os.environ | {"JOB_NAME": self.name, "SLOW": ""}
        command = [sys.executable, "-m", "twopc", *self.arguments(restore_from)]
        deadline = time.monotonic() + WAIT_SECONDS
        with subprocess.Popen(command, env=environment, start_new_session=True) as running:
            try:
                while len(new := sorted(set(self._completed_by_now()) - before)) < checkpoints:
                    assert running.poll() is None, "it ended by itself"
                    assert time.monotonic() < deadline, f"{new} completed"
                    time.sleep(0.1)
            finally:
                os.killpg(running.pid, signal.SIGKILL)
        return new

    def run_to_the_end(self, restore_from: int) -> None:
        ended = twopc(*self.arguments(restore_from), "--until-end", JOB_NAME=self.name)
        assert ended.code == 0, ended.err

    def _completed_by_now(self) -> list[int]:
        # Its folder is there before its ledger.
        there = has_ledger(LocalStore(self.folder / "checkpoints" / self.name))
        return self.completed() if there else []


def test_what_an_abandoned_course_wrote_is_counted_once_forth_and_back_and_forth_again(
    broker: Broker, tmp_path: Path
) -> None:
    job = BackAndForth(broker, tmp_path)
    first = job.run_until_killed(8)
    second = job.run_until_killed(5, restore_from=first[1])
    third = job.run_until_killed(5, restore_from=first[-1])
    assert job.passed(second[0]) + job.passed(third[0]) > 0, "they had left something behind what they read"
    job.run_to_the_end(restore_from=second[2])
    given = Counter(number % KEYS % 2 for number in range(RECORDS))
    found: dict[int, set[int]] = {0: set(), 1: set()}
    for record in read_topic(job.servers, f"{job.name}-out"):
        found[int(record.key or b"")].add(int((record.value or b"").rpartition(b":")[2].strip(b"}")))
    assert {key: (max(numbers), len(numbers)) for key, numbers in found.items()} == {
        key: (count, count) for key, count in given.items()
    }
