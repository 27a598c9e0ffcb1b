"""A job that stops reading one of its topics: nothing of it is given up, or read again, unless that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import CommandResult, twopc
from twopc.checkpoints.catalog import read_job
from twopc.storage.local import LocalStore
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

    def run(topics: list[str], *arguments: str) -> CommandResult:
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
    assert f"input '{b}'" in refused.err
    assert f"--drop-inputs {b}" in refused.err

    written += write(200, 300)
    again = run([a, b])
    assert again.code == 0, again.err
    assert sorted(record.value or b"" for record in read_topic(servers, out)) == sorted(written)

    dropped = run([a], "--drop-inputs", b)
    assert dropped.code == 0, dropped.err
    assert f"reading on from {a}[0]@300\n" in dropped.err
    newest = read_job(LocalStore(tmp_path / "ck"), "merge").completed[-1].metadata
    assert newest is not None
    assert [position.split for position in newest.positions] == [f"{a}[0]"]


COUNT_JOB = """
from twopc import Job, KafkaSink, KafkaSource

def count(seen, value):
    return (seen or 0) + 1, b"%d" % ((seen or 0) + 1)

job = Job({name!r})
job.source(KafkaSource({topic!r})).stateful_map(count, name="seen").sink(KafkaSink({out!r}))
"""


@pytest.mark.proof
def test_counts_go_on_over_another_topic_and_not_in_the_middle_of_one_that_was_dropped_and_is_read_again(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    servers, a, b, out = broker.bootstrap_servers, topic(), topic(), topic()
    job = tmp_path / "job.py"

    def run(name: str, *arguments: str) -> CommandResult:
        job.write_text(COUNT_JOB.format(name=out, topic=name, out=out))
        place = ("-b", servers, "--checkpoint-dir", str(tmp_path / "ck"))
        return twopc("run", str(job), *place, "--host", "process", "--until-end", *arguments)

    def write(name: str) -> None:
        produce(servers, name, [Write(b"x", key=b"k")] * 10)

    for each in (a, b, out):
        create_topic(servers, each)
    write(a)
    write(b)
    assert run(a).code == 0
    assert run(b, "--drop-inputs", a).code == 0
    write(a)
    refused = run(a, "--drop-inputs", b)
    assert refused.code == 2, refused.err
    assert f"{a}[0]@10" in refused.err
    assert "the states (seen)" in refused.err
    named = str(read_job(LocalStore(tmp_path / "ck"), out).completed[-1].checkpoint_id)
    assert f"--from {named}" in refused.err
    counted = [record.value for record in read_topic(servers, out)]
    assert counted == [b"%d" % number for number in range(1, 21)]

    begun = run(a, "--drop-inputs", b, "--from", named)
    assert begun.code == 0, begun.err
    assert [record.value for record in read_topic(servers, out)] == [b"%d" % number for number in range(1, 31)]


def test_a_start_anew_says_that_readers_see_output_twice_only_where_input_is_read_again(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    servers, a, out = broker.bootstrap_servers, topic(), topic()
    job = tmp_path / "job.py"

    def run(start: str, *arguments: str) -> CommandResult:
        kafka = f"from twopc import Job, KafkaSink, KafkaSource, StartingOffsets\njob = Job({out!r})\n"
        chain = f"job.source(KafkaSource({a!r}, start=StartingOffsets.{start}())).sink(KafkaSink({out!r}))\n"
        job.write_text(kafka + chain)
        place = ("-b", servers, "--checkpoint-dir", str(tmp_path / "ck"))
        return twopc("run", str(job), *place, "--host", "process", "--until-end", *arguments)

    for each in (a, out):
        create_topic(servers, each)
    produce(servers, a, [Write(b"x")] * 10)
    assert run("group_offsets").code == 0
    nothing_again = run("group_offsets", "--from", "none")
    assert nothing_again.code == 0, nothing_again.err
    assert "twice" not in nothing_again.err
    all_again = run("earliest", "--from", "none")
    assert all_again.code == 0, all_again.err
    assert f"readers will see the output of this input twice: {a}[0]@0 up to 10" in all_again.err
    assert len(read_topic(servers, out)) == 20
