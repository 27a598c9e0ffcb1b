"""A subtask that stands still, as if its machine had frozen: the job names the machine, and goes on without it."""

from __future__ import annotations

import json
import os
import re
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.jobs.slow_job import SlowJob
from twopc.faults.armed_faults import ArmedFault, ProcessAction
from twopc.faults.points import CrashPoint
from twopc.faults.process import await_true, start_coordinator
from twopc.testing.broker import Broker
from twopc.testing.ports import free_port
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

RECORDS = 2_000
PING_TIMEOUT_OF_GRPC_SECONDS = 60
"""Its default, which must not be what a subtask that froze while it talked is waited for."""

BODY = """
from twopc import Job, KafkaSink, KafkaSource

job = Job(name)
job.source(KafkaSource(f"{name}-in")).map(slowly).sink(KafkaSink(f"{name}-out"))
"""


@pytest.mark.proof
def test_a_subtask_that_stands_still_is_named_with_its_machine_and_the_job_goes_on(
    broker: Broker, topic: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic()
    for suffix in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}", 2)
    values = [b"%d" % number for number in range(RECORDS)]
    produce(broker.bootstrap_servers, f"{name}-in", (Write(value, partition=int(value) % 2) for value in values))
    monkeypatch.setenv("TWOPC_HEARTBEAT_TIMEOUT", "5s")
    frozen = ArmedFault(CrashPoint.AFTER_ACK, ProcessAction.STOP, checkpoint=2, subtask=1)
    finished = SlowJob(broker.bootstrap_servers, name, tmp_path, BODY).run(frozen)
    assert finished.code == 0, finished.err
    silence = re.search(f"subtask 1 on {socket.gethostname()} has been silent for (\\d+) s", finished.err)
    assert silence is not None, finished.err
    assert int(silence[1]) < PING_TIMEOUT_OF_GRPC_SECONDS
    assert json.loads(finished.out)["attempts"] >= 2
    assert Counter(record.value for record in read_topic(broker.bootstrap_servers, f"{name}-out")) == Counter(values)


@pytest.mark.proof
def test_a_subtask_that_froze_is_missed_by_the_coordinator_that_is_started_next(
    broker: Broker, topic: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, port = topic(), free_port()
    for suffix in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}", 2)
    values = [b"%d" % number for number in range(RECORDS)]
    produce(broker.bootstrap_servers, f"{name}-in", (Write(value, partition=int(value) % 2) for value in values))
    monkeypatch.setenv("TWOPC_HEARTBEAT_TIMEOUT", "5s")
    monkeypatch.setenv("TWOPC_COORDINATOR", f"127.0.0.1:{port}")
    frozen = ArmedFault(CrashPoint.AFTER_ACK, ProcessAction.STOP, checkpoint=2, subtask=1)
    job = SlowJob(broker.bootstrap_servers, name, tmp_path, BODY)
    with ThreadPoolExecutor(1) as pool:
        with start_coordinator(tmp_path / "checkpoints", port, os.environ, tmp_path / "first.log"):
            finishing = pool.submit(job.run, frozen)
            await_true(lambda: frozen.has_happened(tmp_path), "nobody froze")
        with start_coordinator(tmp_path / "checkpoints", port, os.environ, tmp_path / "second.log"):
            finished = finishing.result()
    assert finished.code == 0, finished.err
    assert "subtask 1 of 2 did not reach the coordinator in time" in finished.err
    assert json.loads(finished.out)["attempts"] >= 2
    assert Counter(record.value for record in read_topic(broker.bootstrap_servers, f"{name}-out")) == Counter(values)
