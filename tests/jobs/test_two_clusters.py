"""Input on one Kafka cluster, output on another: a transaction ends on one, so it can't carry the positions."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from tests.jobs.slow_job import SLOWLY
from twopc.faults.armed_faults import ArmedFault, ProcessAction
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.topic_partition import TopicPartition
from twopc.testing.broker import Broker
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource

job = Job("between-clusters")
job.source(KafkaSource("flow", bootstrap_servers="{source}")).map(bytes.upper).sink(KafkaSink("flow"))
"""

SPREAD = (
    SLOWLY.format(seconds=0.002)
    + """
from twopc import Job, KafkaSink, KafkaSource

FAR = "{far}"

def count(total, value):
    total = (total or 0) + 1
    return total, b"%s:%d" % (value, total)

job = Job("both-clusters")
numbers = job.source(KafkaSource("spread-in", bootstrap_servers=FAR)).map(slowly)
numbers.stateful_map(count, name="count").sink(KafkaSink("near-counts"), name="near")
numbers.sink(KafkaSink("far-copies", bootstrap_servers=FAR), name="far")
"""
)
RECORDS = 6_000
"""More than are read before the third checkpoint: until then a record takes two milliseconds."""


@pytest.mark.proof
def test_between_topics_of_one_name_each_record_comes_once_and_the_group_follows_on_the_cluster_of_the_input(
    broker: Broker, tmp_path: Path
) -> None:
    with LocalBroker(tmp_path / "other", light=True) as other:
        create_topic(other.bootstrap_servers, "flow", 2)
        create_topic(broker.bootstrap_servers, "flow", 1)
        (tmp_path / "job.py").write_text(JOB.format(source=other.bootstrap_servers))
        for half in (b"first", b"second"):
            produce(other.bootstrap_servers, "flow", [Write(half + b" %d" % number) for number in range(500)])
            finished = twopc(
                *("run", str(tmp_path / "job.py"), "--bootstrap-servers", broker.bootstrap_servers),
                *("--checkpoint-dir", str(tmp_path / "checkpoints"), "--parallelism", "2", "--host", "process"),
                *("--checkpoint-interval", "200ms", "--until-end"),
            )
            assert finished.code == 0, finished.err
        found = Counter(record.value for record in read_topic(broker.bootstrap_servers, "flow"))
        halves = (b"FIRST", b"SECOND")
        assert found == Counter(half + b" %d" % number for half in halves for number in range(500))
        with ControlClient(other.bootstrap_servers, {}) as client:
            at = client.group_offsets("between-clusters", [TopicPartition("flow", number) for number in (0, 1)])
        assert sum(offset.position for offset in at.values()) == 1_000
        judge = ("verify", "--map", str(tmp_path / "job.py"), "--bootstrap-servers", broker.bootstrap_servers)
        verified = twopc(*judge)
        assert verified.code == 0, verified.out + verified.err
        produce(broker.bootstrap_servers, "flow", [Write(b"FIRST 0")])
        doubled = twopc(*judge)
        assert doubled.code == 1, doubled.out + doubled.err


@pytest.mark.proof
def test_sinks_on_both_clusters_are_exact_through_a_kill_between_their_commits_as_verify_says(
    broker: Broker, tmp_path: Path
) -> None:
    kill = ArmedFault(CrashPoint.BETWEEN_COMMITS, ProcessAction.KILL, checkpoint=3, subtask=0)
    with LocalBroker(tmp_path / "other", light=True) as other:
        near, far = broker.bootstrap_servers, other.bootstrap_servers
        for servers, topic in ((far, "spread-in"), (far, "far-copies"), (near, "near-counts")):
            create_topic(servers, topic, 2)
        written = (
            Write(b"%d" % number, b"key-%d" % (number % 7), partition=number % 7 % 2) for number in range(RECORDS)
        )
        produce(far, "spread-in", written)
        job_file = tmp_path / "spread_job.py"
        job_file.write_text(SPREAD.format(far=far))
        struck = {"STRUCK": str(kill.once(tmp_path))}
        finished = twopc(
            *("run", str(job_file), "--bootstrap-servers", near, "--checkpoint-dir", str(tmp_path / "checkpoints")),
            *("--parallelism", "2", "--host", "process", "--checkpoint-interval", "200ms", "--until-end", "-o", "json"),
            **struck,
            **{VARIABLE: kill.armed(tmp_path)},
        )
        assert finished.code == 0, finished.err
        assert json.loads(finished.out)["attempts"] >= 2
        command = ["verify", "--map", str(job_file), "--bootstrap-servers", near, "-o", "json"]
        verified = twopc(*command, **struck)
        assert verified.code == 0, verified.out + verified.err
        assert "near-counts" in verified.out
        assert "far-copies" in verified.out
        produce(far, "far-copies", [Write(b"5", b"key-5", partition=1)])
        doubled = twopc(*command, **struck)
        assert doubled.code == 1, doubled.out + doubled.err
