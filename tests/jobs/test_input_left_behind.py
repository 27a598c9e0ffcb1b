"""A job that stops reading one of its topics: nothing of it is given up, or read again, unless that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import Finished, twopc
from twopc.checkpoints import read_job
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource, StartingOffsets
job = Job("merge")
job.source(KafkaSource({topics}, start=StartingOffsets.earliest())).sink(KafkaSink({out!r}))
"""


def test_a_topic_that_the_job_stops_reading_is_refused_then_read_on_exactly_or_dropped_by_name(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    servers, a, b, out = broker.bootstrap_servers, topic(), topic(), topic()

    def run(topics: list[str], *arguments: str) -> Finished:
        job = tmp_path / "job.py"
        job.write_text(JOB.format(topics=topics, out=out))
        place = ("-b", servers, "--checkpoint-dir", str(tmp_path / "ck"))
        return twopc("run", str(job), *place, "--host", "process", "--until-end", *arguments)

    def write(first: int, last: int) -> list[bytes]:
        values = {each: [b"%s-%d" % (each.encode(), number) for number in range(first, last)] for each in (a, b)}
        for each, its in values.items():
            produce(servers, each, map(Write, its))
        return values[a] + values[b]

    for each in (a, b, out):
        create_topic(servers, each)
    written = write(0, 200)
    both = run([a, b])
    assert both.code == 0, both.err

    refused = run([a])
    assert refused.code == 2, refused.err
    assert f"input topic '{b}'" in refused.err
    assert f"--drop-inputs {b}" in refused.err

    written += write(200, 300)
    again = run([a, b])
    assert again.code == 0, again.err
    assert sorted(record.value or b"" for record in read_topic(servers, out)) == sorted(written)

    dropped = run([a], "--drop-inputs", b)
    assert dropped.code == 0, dropped.err
    assert f"reading on from {a}[0]@300\n" in dropped.err
    newest = read_job(tmp_path / "ck", "merge").completed[-1].metadata
    assert newest is not None
    assert [position.partition.topic for position in newest.positions] == [a]
