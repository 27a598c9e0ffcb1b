"""A job whose topic grows, and that gets another one, while it runs: all is read once, whoever is killed meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from tests.kafka.kit import grow_topic
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

JOB = """
from twopc import Job, Json, KafkaSink, KafkaSource, StartingOffsets

job = Job("{name}")
stream = job.source(KafkaSource(pattern="{name}-in-.*", discovery="300ms", start=StartingOffsets.latest()))
{then}stream.sink(KafkaSink("{name}-out"))
"""
COUNTED = """stream = stream.stateful_map(lambda n, v: ((n or 0) + 1, v), name="count", state=Json())
"""
BY_KEY = """stream = stream.key_by(lambda value: value[:1], name="by-topic")
"""
PATIENCE_SECONDS = 240.0


class Played:
    """A job over the topics of a pattern, of which one is there, and what was written to these."""

    def __init__(self, broker: Broker, name: str, folder: Path, then: str = "") -> None:
        self.name, self.servers, self.folder = name, broker.bootstrap_servers, folder
        self.given: list[bytes] = []
        create_topic(self.servers, f"{name}-in-a", 1)
        create_topic(self.servers, f"{name}-out", 2)
        (folder / "job.py").write_text(JOB.format(name=name, then=then))

    def give(self, suffix: str, partition: int, count: int = 50) -> None:
        values = [b"%s-%d-%d" % (suffix.encode(), partition, len(self.given) + n) for n in range(count)]
        produce(self.servers, f"{self.name}-in-{suffix}", [Write(v, key=v, partition=partition) for v in values])
        self.given += values

    def grow(self, suffix: str, partitions: int) -> None:
        grow_topic(self.servers, f"{self.name}-in-{suffix}", partitions)

    @contextmanager
    def running(self, **environment: str) -> Iterator[subprocess.Popen[str]]:
        with (self.folder / "log").open("a") as log:
            command = ("run", str(self.folder / "job.py"), "-b", self.servers, *self._where, "--host", "process")
            run = subprocess.Popen(
                [sys.executable, "-m", "twopc", *command, "-p", "2", "--checkpoint-interval", "200ms"],
                stderr=log,
                stdout=log,
                text=True,
                env=os.environ | environment,
            )
            try:
                yield run
            finally:
                run.kill()
                run.wait()

    @property
    def _where(self) -> tuple[str, str]:
        return "--checkpoint-dir", str(self.folder / "checkpoints")

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def output(self) -> list[bytes]:
        return sorted(record.value or b"" for record in read_topic(self.servers, f"{self.name}-out"))

    def until(self, seen: Callable[[], bool]) -> None:
        ends = time.monotonic() + PATIENCE_SECONDS
        while not seen():
            assert time.monotonic() < ends, self.log
            time.sleep(0.2)

    def until_read(self) -> None:
        self.until(lambda: len(self.output()) >= len(self.given))

    def stop(self, run: subprocess.Popen[str]) -> None:
        stopped = twopc("stop", self.name, "--drain", *self._where)
        assert stopped.code == 0, stopped.err
        assert run.wait(PATIENCE_SECONDS) == 0, self.log
        assert self.output() == sorted(self.given)


@pytest.mark.drill
@pytest.mark.parametrize(
    "point",
    [
        pytest.param(None, marks=pytest.mark.proof),
        CrashPoint.BEFORE_COMMIT,
        pytest.param(CrashPoint.DRIVER_AFTER_SETTLE, marks=pytest.mark.proof),
        pytest.param(CrashPoint.BEFORE_RESTORE, marks=pytest.mark.proof),
    ],
    ids=lambda point: "nobody" if point is None else point.name.lower(),
)
def test_what_is_new_is_read_from_its_first_record_once_whoever_is_killed(
    broker: Broker, topic: Callable[[], str], tmp_path: Path, point: CrashPoint | None
) -> None:
    played = Played(broker, topic(), tmp_path)
    once = tmp_path / "once"
    armed = {} if point is None else {VARIABLE: f"{point.name},checkpoint=2,once={once}"}
    with played.running(**armed) as run:
        # It starts at the end that the topic had: what is new since begins at its first record nevertheless.
        played.until(lambda: any((tmp_path / "checkpoints").rglob("chk-*")))
        played.give("a", 0)
        create_topic(played.servers, f"{played.name}-in-b", 1)
        played.give("b", 0)
        played.grow("a", 3)
        played.give("a", 2)
        if point is CrashPoint.DRIVER_AFTER_SETTLE:
            assert run.wait(PATIENCE_SECONDS) != 0
        else:
            played.until_read()
            played.stop(run)
    if point is CrashPoint.DRIVER_AFTER_SETTLE:
        with played.running() as again:
            played.until_read()
            played.stop(again)
    assert once.exists() is (point is not None)


@pytest.mark.broker
def test_state_behind_a_topic_of_the_job_s_own_does_not_mind_more_partitions_of_the_input(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    played = Played(broker, topic(), tmp_path, BY_KEY + COUNTED)
    with played.running() as run:
        played.until(lambda: any((tmp_path / "checkpoints").rglob("chk-*")))
        played.give("a", 0)
        played.grow("a", 2)
        played.give("a", 1)
        played.until_read()
        played.stop(run)
    scanned = twopc("state", "scan", "latest", "count", *played._where, "-o", "json")
    assert [row["value"] for row in json.loads(scanned.out)] == [len(played.given)]


@pytest.mark.broker
def test_more_partitions_of_a_topic_with_state_by_key_are_refused_by_name_and_the_job_goes_on(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    played = Played(broker, topic(), tmp_path, COUNTED)
    with played.running() as run:
        played.until(lambda: any((tmp_path / "checkpoints").rglob("chk-*")))
        played.grow("a", 2)
        played.until(lambda: "there is new input that is not read" in played.log)
        assert f"'count' keeps a state for each key, and {played.name}-in-a had 1 partitions" in played.log
        played.give("a", 0)
        played.until_read()
        played.stop(run)
    refused = twopc("run", str(tmp_path / "job.py"), "-b", played.servers, *played._where, "--host", "inline")
    assert refused.code == 2
    assert "had 1 partitions when it was begun and has 2 now" in " ".join(refused.err.split())
