"""Brokers that are away for a while are told of in two lines for the whole job, not in hundreds of each client's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.cli import TIMEOUT_SECONDS
from tests.rpc.kit import eventually
from twopc.kafka.clients.client_log import log as client_log
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic, produce

pytestmark = [pytest.mark.broker, pytest.mark.proof]

JOB = """
import time
from twopc import Job, KafkaSink, KafkaSource

def slow(value):
    time.sleep(0.01)
    return value

job = Job("waiting")
job.source(KafkaSource("in")).map(slow).sink(KafkaSink("out"))
"""


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[LocalBroker]:
    """A broker that no other test misses while it is away."""
    with LocalBroker(tmp_path / "kafka", light=True) as running:
        yield running


@pytest.mark.timeout(600)
def test_an_outage_is_said_once_and_its_end_once_over_all_clients_of_a_job(
    own_broker: LocalBroker, tmp_path: Path
) -> None:
    servers = own_broker.bootstrap_servers
    for topic in ("in", "out"):
        create_topic(servers, topic, 2)
    produce(servers, "in", [b"x"] * 20_000)
    (tmp_path / "job.py").write_text(JOB)
    said = tmp_path / "said"
    command = [sys.executable, "-m", "twopc", "run", str(tmp_path / "job.py"), "-b", servers, "--host", "process"]
    command += ["-p", "2", "--checkpoint-dir", str(tmp_path / "checkpoints"), "--log-level", "info"]
    with said.open("w") as file, subprocess.Popen(command, stderr=file, stdout=file, env=os.environ) as process:
        try:
            eventually(lambda: "completed in" in said.read_text(), "a checkpoint completes")
            own_broker.kill()
            eventually(lambda: "has answered since" in said.read_text(), "the outage is said")
            own_broker.start()
            eventually(lambda: "answer again" in said.read_text(), "its end is said")
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_SECONDS) == 0, said.read_text()
        finally:
            process.kill()
    text = said.read_text()
    [away] = [line for line in text.splitlines() if "has answered since" in line]
    [back] = [line for line in text.splitlines() if "answer again" in line]
    assert servers in away
    assert servers in back
    of_clients = [
        line for line in text.splitlines() if "rdkafka" in line or " kafka." in line or f" {client_log.name}:" in line
    ]
    assert of_clients == []
    # Of both topics' clients, two workers and a driver: what else is said is of the job.
    told = [line for line in text.splitlines() if "WARNING" in line and line not in (away, back)]
    assert all("twopc.job.waiting" in line or "declined" in line or "attempt failed" in line for line in told), told
