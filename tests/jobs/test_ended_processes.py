"""A function that ends its process: an error that is told at once, and leaves no transaction open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

RECORDS = 300

JOB = """
import os, sys, threading, time
from twopc import Job, KafkaSink, KafkaSource

def step(value):
    if value == b"poison":
        {how}
    return value

job = Job("{name}")
job.source(KafkaSource("{name}-in")).map(step).sink(KafkaSink("{name}-out"))
"""


def ended(broker: Broker, name: str, folder: Path, *options: str, how: str) -> tuple[int, str]:
    """Run the job over input whose last record ends the process; return the exit code, and what was said."""
    for suffix in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}", partitions=2)
    records = [Write(b"x", partition=index % 2) for index in range(RECORDS)]
    produce(broker.bootstrap_servers, f"{name}-in", [*records, Write(b"poison", partition=0)])
    (folder / "job.py").write_text(JOB.format(name=name, how=how))
    done = twopc(
        *("run", str(folder / "job.py"), "-b", broker.bootstrap_servers, "--checkpoint-dir", str(folder / "ck")),
        *("--host", "process", "--checkpoint-interval", "10m", *options),
    )
    return done.code, done.err + done.out


def open_transactions(broker: Broker, name: str) -> list[str]:
    with ControlClient(broker.bootstrap_servers, {}) as client:
        states = client.list_transactions()
    return [each for each, state in states.items() if each.startswith(name) and state is BrokerState.ONGOING]


@pytest.mark.parametrize(
    ("subtasks", "until_end"),
    [
        pytest.param(1, ("--until-end",), id="bounded-1"),
        pytest.param(1, (), id="unbounded-1", marks=pytest.mark.proof),
        pytest.param(2, ("--until-end",), id="bounded-2", marks=pytest.mark.proof),
        pytest.param(2, (), id="unbounded-2"),
    ],
)
def test_a_job_whose_function_ends_its_process_has_not_finished(
    broker: Broker, topic: Callable[[], str], tmp_path: Path, subtasks: int, until_end: tuple[str, ...]
) -> None:
    name = topic()
    code, said = ended(
        broker, name, tmp_path, "--parallelism", str(subtasks), *until_end, how="time.sleep(2); os._exit(0)"
    )
    assert code == 1, said
    assert "(exit code 0) before the job had finished: does a function end it, e.g. by sys.exit or os._exit?" in said
    assert "finished;" not in said
    assert open_transactions(broker, name) == []
    # Nothing hides what others write, and nothing of the job is there.
    produce(broker.bootstrap_servers, f"{name}-out", [Write(b"another's", partition=0)])
    assert [read.value for read in read_topic(broker.bootstrap_servers, f"{name}-out")] == [b"another's"]


def test_a_thread_that_ends_the_process_is_told_in_the_same_way(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    how = "threading.Timer(1, os._exit, [0]).start()"
    code, said = ended(broker, topic(), tmp_path, how=how)
    assert code == 1, said
    assert "before the job had finished" in said
