"""The consumer group follows the job, whatever the sink does and however little comes out."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.jobs.cli import twopc
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = pytest.mark.broker

RECORDS = 300

SINKS = {
    "exactly once": 'KafkaSink(name + "-out")',
    "at least once": 'KafkaSink(name + "-out", delivery_guarantee="at_least_once")',
    "none": 'KafkaSink(name + "-out", delivery_guarantee="none")',
    "files": 'FileSink(os.environ["OUT"])',
}

JOB = """
import os
from file_sink import FileSink
from twopc import Job, Json, KafkaSink, KafkaSource

name = os.environ["JOB_NAME"]
job = Job(name)
job.source(KafkaSource(name + "-in")).filter(lambda value: {keep}).sink({sink})
"""


@pytest.mark.parametrize("keep", ["True", "False"], ids=["all kept", "all dropped"])
@pytest.mark.parametrize(
    "sink",
    [
        pytest.param(sink, id=name, marks=pytest.mark.proof if name in ("none", "files") else ())
        for name, sink in SINKS.items()
    ],
)
def test_at_the_end_the_group_stands_where_the_input_ends(
    broker: Broker, topic: Callable[[], str], tmp_path: Path, sink: str, keep: str
) -> None:
    name = topic()
    for suffix in ("in", "out"):
        create_topic(broker.bootstrap_servers, f"{name}-{suffix}")
    produce(broker.bootstrap_servers, f"{name}-in", (Write(b'"x"') for _ in range(RECORDS)))
    shutil.copy(Path(__file__).parents[2] / "examples" / "file_sink.py", tmp_path)
    text = JOB.format(keep=keep, sink=sink)
    if "FileSink(os" in text:
        text = text.replace('"-in")', '"-in", value=Json())')
    (tmp_path / "job.py").write_text(text)
    finished = twopc(
        *("run", str(tmp_path / "job.py"), "-b", broker.bootstrap_servers, "--checkpoint-dir", str(tmp_path / "ck")),
        *("--checkpoint-interval", "100ms", "--host", "process", "--until-end"),
        JOB_NAME=name,
        OUT=str(tmp_path / "out"),
    )
    assert finished.code == 0, finished.err
    assert group_offset(broker.bootstrap_servers, name) == RECORDS


def group_offset(servers: str, job: str) -> int:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": job})
    try:
        (found,) = consumer.committed([TopicPartition(f"{job}-in", 0)], timeout=60)
    finally:
        consumer.close()
    return int(found.offset)
