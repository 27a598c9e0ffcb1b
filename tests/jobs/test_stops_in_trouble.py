"""SIGTERM while brokers are away, or before a subtask has started: the run ends in seconds, and says how."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.kafka.kit import eventually
from tests.warm_start import COLD
from twopc.errors import Unavailable
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

SECONDS = 150.0
"""What a machine gives that ends a job before it uses force, five times: the tests' machine may be busy."""

JOB = """
from twopc import Job, KafkaSink, KafkaSource

job = Job("{name}")
job.source(KafkaSource("{name}-in")).sink(KafkaSink("{name}-out"))
"""


@contextmanager
def running(broker: LocalBroker, name: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The job, in a process of its own, with records to read."""
    (folder / "job.py").write_text(JOB.format(name=name))
    command = ["run", str(folder / "job.py"), "-b", broker.bootstrap_servers, "--checkpoint-dir", str(folder / "ck")]
    command += ["--host", "process", "--checkpoint-interval", "10m"]
    with subprocess.Popen(
        [sys.executable, "-m", "twopc", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A start with nothing beside it: the only children are workers.
        env=os.environ | {COLD: "1"},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def topics_of(broker: LocalBroker, name: str) -> None:
    for suffix in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}")
    produce(broker.bootstrap_servers, f"{name}-in", [Write(b"x")] * 100)


def stopped(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Send SIGTERM; return the exit code and what was said."""
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out + err


@contextmanager
def away(broker: LocalBroker, how: signal.Signals) -> Iterator[None]:
    """The broker is stopped, or killed, until this is left."""
    pid = broker.nodes[0].pid
    assert pid is not None
    os.kill(pid, how)
    try:
        yield
    finally:
        if how is signal.SIGSTOP:
            os.kill(pid, signal.SIGCONT)
        else:
            broker.kill()
            broker.start()


def writes(process: subprocess.Popen[str], broker: LocalBroker, name: str, before: frozenset[str]) -> bool:
    """Whether the job has a transaction open that is not one of those before; fails once the job has ended."""
    assert process.poll() is None, process.communicate()
    return bool(open_transactions(broker, name) - before)


def open_transactions(broker: LocalBroker, name: str) -> frozenset[str]:
    """Return those of the job; none while a broker that was stopped still loads what it coordinates."""
    with ControlClient(broker.bootstrap_servers, {}) as client:
        try:
            states = client.list_transactions()
        except Unavailable:
            return frozenset()
    return frozenset(each for each, state in states.items() if each.startswith(name) and state is BrokerState.ONGOING)


def dials(process: subprocess.Popen[str], broker: LocalBroker) -> bool:
    """Whether the job has a connection to the broker, which may stand still; fails once the job has ended."""
    assert process.poll() is None, process.communicate()
    ports = {int(server.rpartition(":")[2]) for server in broker.bootstrap_servers.split(",")}
    return any(each.raddr and each.raddr.port in ports for each in psutil.Process(process.pid).net_connections("tcp"))


@pytest.mark.proof
@pytest.mark.parametrize("how", [pytest.param(signal.SIGSTOP, id="stopped"), pytest.param(signal.SIGKILL, id="killed")])
def test_a_stop_while_the_broker_is_away_ends_the_run_and_the_next_start_goes_on(
    broker: LocalBroker, topic: Callable[[], str], tmp_path: Path, how: signal.Signals
) -> None:
    name = topic()
    topics_of(broker, name)
    with running(broker, name, tmp_path) as process:
        eventually(lambda: writes(process, broker, name, frozenset()))
        first = open_transactions(broker, name)
        with away(broker, how):
            code, said = stopped(process)
    assert code == 1, said
    assert "stopped without a last checkpoint" in said
    assert "Nothing is lost" in said
    with running(broker, name, tmp_path) as process:
        eventually(lambda: writes(process, broker, name, first))
        code, said = stopped(process)
    assert code == 0, said
    assert "stopped with a last checkpoint; 100 records in" in said
    assert len(read_topic(broker.bootstrap_servers, f"{name}-out")) == 100


def test_a_stop_while_the_job_recovers_ends_the_run(
    broker: LocalBroker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    topics_of(broker, name)
    with away(broker, signal.SIGSTOP), running(broker, name, tmp_path) as process:
        eventually(lambda: dials(process, broker))
        code, said = stopped(process)
    assert code == 0, said
    assert "stopped before a record was read" in said


def test_a_stop_before_a_subtask_has_started_ends_the_run(
    broker: LocalBroker, topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    topics_of(broker, name)
    with running(broker, name, tmp_path) as process:
        eventually(lambda: bool(children_of(process.pid)))
        (worker,) = children_of(process.pid)
        os.kill(worker, signal.SIGSTOP)
        eventually(lambda: any(tmp_path.glob(f"ck/{name}/*")))
        code, said = stopped(process)
    assert code == 0, said
    assert "stopped before a record was read" in said


def children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
