"""What a user's function starts beside itself ends with the worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from tests.worker.test_parent_watchdog import runs
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

JOB = """
import os, subprocess, time
from twopc import Job, KafkaSink, KafkaSource

def fork(value):
    child = os.fork()
    if not child:
        time.sleep(600)
        os._exit(0)
    return b"%d" % child

def start(value):
    return b"%d" % subprocess.Popen(["sleep", "600"], start_new_session=False).pid

def note(value):
    with open(os.environ["PIDS"], "ab") as pids:
        pids.write(value + b" ")
    return value

name = os.environ["JOB_NAME"]
job = Job(name).source(KafkaSource(name + "-in")).map(STEP).map(note).sink(KafkaSink(name + "-out"))
"""
PATIENCE_SECONDS = 120.0


@pytest.mark.broker
@pytest.mark.parametrize(
    ("host", "step"),
    [
        ("process", "fork"),
        ("process", "start"),
        pytest.param("spark", "fork", marks=[pytest.mark.spark, pytest.mark.proof]),
    ],
)
def test_it_ends_with_the_worker(
    broker: Broker, tmp_path: Path, topic: Callable[[], str], host: str, step: str
) -> None:
    name, pids, job_file = topic(), tmp_path / "pids", tmp_path / "job.py"
    for suffix in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}")
    produce(broker.bootstrap_servers, f"{name}-in", [Write(b"1")])
    job_file.write_text(JOB.replace("STEP", step))
    finished = twopc(
        *("run", str(job_file), "-b", broker.bootstrap_servers, "--host", host, "--until-end"),
        *("--checkpoint-dir", str(tmp_path / "checkpoints")),
        JOB_NAME=name,
        PIDS=str(pids),
    )
    assert finished.code == 0, finished.err
    [started] = map(int, pids.read_text().split())
    deadline = time.monotonic() + PATIENCE_SECONDS
    while runs(started) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not runs(started)
