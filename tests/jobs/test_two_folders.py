"""One job started from two folders that know nothing of each other: one of them runs, and the output is exact."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from tests.kafka.kit import eventually
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

RECORDS = 3_000
REFUSED, FENCED = 2, 4

JOB = """
import time
from twopc import Job, KafkaSink, KafkaSource

def slowly(value):
    time.sleep({pause})
    return value

def count(seen, value):
    return (seen or 0) + 1, value

job = Job("{name}")
stream = job.source(KafkaSource("{name}-in")).map(slowly){keyed}
stream.sink(KafkaSink("{name}-out"))
"""
COUNTED = '.stateful_map(count, name="seen")'


def prepared(broker: Broker, name: str, folder: Path, *, records: int = RECORDS, keyed: str = "") -> None:
    for suffix in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}")
    produce(broker.bootstrap_servers, f"{name}-in", [Write(b"%d" % index, key=b"k") for index in range(records)])
    pause = 0.001 if records == RECORDS else 0
    (folder / "job.py").write_text(JOB.format(name=name, pause=pause, keyed=keyed))


def command(broker: Broker, folder: Path, checkpoints: str, *more: str) -> list[str]:
    options = ["--checkpoint-dir", str(folder / checkpoints), "--host", "process", "--checkpoint-interval", "200ms"]
    return ["run", str(folder / "job.py"), "-b", broker.bootstrap_servers, *options, *more]


def written(broker: Broker, name: str) -> list[int]:
    return sorted(int(read.value or b"") for read in read_topic(broker.bootstrap_servers, f"{name}-out"))


class Loop:
    """`while true; do twopc run ...; done`"""

    def __init__(self, arguments: list[str]) -> None:
        self._arguments = [sys.executable, "-m", "twopc", *arguments]
        self._over = threading.Event()
        self.codes: list[int] = []
        self.said: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            self._process = subprocess.Popen(
                self._arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            _, err = self._process.communicate()
            self.said.append(err)
            self.codes.append(self._process.returncode)

    def end(self) -> None:
        self._over.set()
        while self._thread.is_alive():
            if self._process is not None:
                self._process.send_signal(signal.SIGTERM)
            self._thread.join(2)


@contextmanager
def loops(*arguments: list[str]) -> Iterator[tuple[Loop, ...]]:
    running = tuple(Loop(each) for each in arguments)
    try:
        yield running
    finally:
        for loop in running:
            loop.end()


def is_refused(loop: Loop) -> bool:
    return loop.codes[-3:] == [REFUSED] * 3


@pytest.mark.proof
def test_of_two_that_are_started_again_and_again_one_runs_and_the_output_is_exact(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    prepared(broker, name, tmp_path)
    with loops(command(broker, tmp_path, "one"), command(broker, tmp_path, "two")) as pair:
        eventually(lambda: any(map(is_refused, pair)) and len(written(broker, name)) >= RECORDS, 300)
        [loser] = [loop for loop in pair if is_refused(loop)]
        [winner] = [loop for loop in pair if loop is not loser]
        ended = len(winner.codes)
        later = len(loser.codes) + 2
        eventually(lambda: len(loser.codes) >= later)
        assert len(winner.codes) == ended, winner.said[-1]
    assert written(broker, name) == list(range(RECORDS))
    assert 0 not in loser.codes[:-1], loser.said
    assert "--checkpoint-dir" in loser.said[-2] + loser.said[-3]
    assert "--from none" in loser.said[-2] + loser.said[-3]


@pytest.mark.proof
def test_who_is_taken_over_from_another_folder_ends_as_fenced_and_says_by_which_attempt(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    prepared(broker, name, tmp_path)
    with subprocess.Popen(
        [sys.executable, "-m", "twopc", *command(broker, tmp_path, "one")], stderr=subprocess.PIPE, text=True
    ) as first:
        eventually(lambda: len(written(broker, name)) > 0)
        refused = twopc(*command(broker, tmp_path, "two"))
        assert refused.code == REFUSED, refused.err
        assert first.poll() is None
        with loops(command(broker, tmp_path, "two", "--from", "none")):
            _, said = first.communicate(timeout=300)
    assert first.returncode == FENCED, said
    assert re.search(r"as attempt (?!1\b)\d+", said), said
    assert "trying again" not in said


def test_a_start_whose_folder_is_gone_is_refused_unless_it_is_told_to_begin_anew(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    prepared(broker, name, tmp_path, records=100)
    assert twopc(*command(broker, tmp_path, "one", "--until-end")).code == 0
    refused = twopc(*command(broker, tmp_path, "two", "--until-end"))
    assert refused.code == REFUSED, refused.err
    assert "--checkpoint-dir" in refused.err
    assert "--from none" in refused.err
    assert twopc(*command(broker, tmp_path, "two", "--until-end", "--from", "none")).code == 0
    # The folder that began anew goes on, the other one does not.
    assert twopc(*command(broker, tmp_path, "two", "--until-end")).code == 0
    assert twopc(*command(broker, tmp_path, "one", "--until-end")).code == REFUSED
    assert written(broker, name) == list(range(100))


def test_states_do_not_begin_empty_where_a_group_is_in_the_middle_of_the_input(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    prepared(broker, name, tmp_path, records=100, keyed=COUNTED)
    stand_at(broker, name, 40)
    refused = twopc(*command(broker, tmp_path, "one", "--until-end"))
    assert refused.code == REFUSED, refused.err
    assert "the states (seen) would begin empty, but the consumer group would have reading begin in the middle" in (
        refused.err
    )
    assert f"{name}-in[0]@40" in refused.err
    assert written(broker, name) == []
    begun = twopc(*command(broker, tmp_path, "one", "--until-end", "--from", "none"))
    assert begun.code == 0, begun.err
    assert written(broker, name) == list(range(40, 100))


def stand_at(broker: Broker, name: str, position: int) -> None:
    """Commit a position for the job's group, as a person does who moves a job here."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": name})
    try:
        consumer.commit(offsets=[TopicPartition(f"{name}-in", 0, position)], asynchronous=False)
    finally:
        consumer.close()
