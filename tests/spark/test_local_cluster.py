"""Executors that are processes of their own, as on a cluster: nothing may assume that they are the driver's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

JOB = """
import os
from twopc import Job, KafkaSink, KafkaSource
from helper import shout

END = open("end", "rb").read()
os.chdir("/")

def end(value):
    return shout(value) + END

name = os.environ["JOB_NAME"]
job = Job(name)
job.source(KafkaSource(f"{name}-in")).map(end).sink(KafkaSink(f"{name}-out"))
"""


@pytest.mark.proof
def test_a_job_with_a_module_of_its_own_and_a_file_runs_on_two_executors(
    broker: Broker,
    light_jvms: dict[str, str],
    topic: Callable[[], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = topic()
    for suffix in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}", 2)
    produce(broker.bootstrap_servers, f"{name}-in", (Write(b"a%d" % number) for number in range(1000)))
    (tmp_path / "helper.py").write_text("def shout(value):\n    return value.upper()\n")
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "end").write_text("!")
    monkeypatch.chdir(tmp_path)
    finished = twopc(
        *("run", str(tmp_path / "job.py"), "-b", broker.bootstrap_servers, "--checkpoint-dir", str(tmp_path / "ck")),
        *("-p", "2", "--master", "local-cluster[2,1,1024]", "--until-end", "-o", "json"),
        JOB_NAME=name,
        **light_jvms,
    )
    assert finished.code == 0, finished.err
    assert json.loads(finished.out)["records_out"] == 1000
    found = Counter(record.value for record in read_topic(broker.bootstrap_servers, f"{name}-out"))
    assert found == Counter(b"A%d!" % number for number in range(1000))
