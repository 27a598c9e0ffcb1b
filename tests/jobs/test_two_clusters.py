"""Input on one Kafka cluster, output on another: a transaction ends on one, so it can't carry the positions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.wire import ControlClient
from twopc.testing.broker import Broker
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource

job = Job("between-clusters")
job.source(KafkaSource("far-in", bootstrap_servers="{source}")).map(bytes.upper).sink(KafkaSink("near-out"))
"""


def test_each_record_comes_once_and_the_group_follows_on_the_cluster_of_the_input(
    broker: Broker, tmp_path: Path
) -> None:
    with LocalBroker(tmp_path / "other", light=True) as other:
        create_topic(other.bootstrap_servers, "far-in", 2)
        create_topic(broker.bootstrap_servers, "near-out", 1)
        (tmp_path / "job.py").write_text(JOB.format(source=other.bootstrap_servers))
        for half in (b"first", b"second"):
            produce(other.bootstrap_servers, "far-in", [Write(half + b" %d" % number) for number in range(500)])
            finished = twopc(
                *("run", str(tmp_path / "job.py"), "--bootstrap-servers", broker.bootstrap_servers),
                *("--checkpoint-dir", str(tmp_path / "checkpoints"), "--parallelism", "2", "--host", "process"),
                *("--checkpoint-interval", "200ms", "--until-end"),
            )
            assert finished.code == 0, finished.err
        found = Counter(record.value for record in read_topic(broker.bootstrap_servers, "near-out"))
        halves = (b"FIRST", b"SECOND")
        assert found == Counter(half + b" %d" % number for half in halves for number in range(500))
        with ControlClient(other.bootstrap_servers, {}) as client:
            at = client.group_offsets("between-clusters", [TopicPartition("far-in", number) for number in (0, 1)])
        assert sum(offset.position for offset in at.values()) == 1_000
