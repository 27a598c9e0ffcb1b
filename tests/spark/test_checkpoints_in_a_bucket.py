"""Subtasks that Spark has forked keep their checkpoints in a bucket: the store's client is made after the fork."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from tests.object_server.server import ObjectServer
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = [pytest.mark.spark, pytest.mark.proof]

RECORDS = 400

JOB = """
import os
from twopc import Job, KafkaSink, KafkaSource

name = os.environ["JOB_NAME"]
job = Job(name)
job.source(KafkaSource(f"{name}-in")).map(bytes.upper).sink(KafkaSink(f"{name}-out"))
"""


def test_a_job_on_spark_stores_in_a_bucket_and_goes_on_from_there(
    broker: Broker, object_server: ObjectServer, topic: Callable[[], str], tmp_path: Path
) -> None:
    name = topic()
    for suffix in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}", 2)
    (tmp_path / "job.py").write_text(JOB)
    where = ("--checkpoint-dir", object_server.url(f"spark/{name}"), "-o", "json")
    run = ("run", str(tmp_path / "job.py"), "-b", broker.bootstrap_servers, "-p", "2", "--until-end", *where)
    environment = {"JOB_NAME": name, "TWOPC_CHECKPOINT_INLINE_BYTES": "0", **object_server.environment()}
    for given in (RECORDS, 2 * RECORDS):
        produce(broker.bootstrap_servers, f"{name}-in", (Write(b"x") for _ in range(RECORDS)))
        finished = twopc(*run, **environment)
        assert finished.code == 0, finished.err
        assert len(read_topic(broker.bootstrap_servers, f"{name}-out")) == given
    assert [each["findings"] for each in json.loads(twopc("checkpoints", "verify", *where, **environment).out)] == [[]]
