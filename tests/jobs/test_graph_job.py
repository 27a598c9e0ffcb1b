"""A job of two sources and three sinks, Kafka and files, through a kill -9: nothing lost, nothing twice, in any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.slow_job import SlowJob
from twopc.faults.armed_faults import ArmedFault
from twopc.faults.points import CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

RECORDS = 10_000
"""Of each topic: more than are read before the third checkpoint, however slow a machine is at those."""

JOB = """
from file_sink import FileSink
from twopc import Job, Json, KafkaSink, KafkaSource

job = Job(name)
odd = job.source(KafkaSource(f"{name}-odd", value=Json()), name="odd").map(slowly)
even = job.source(KafkaSource(f"{name}-even", value=Json()), name="even").map(slowly)
numbers = odd.merge(even)
numbers.sink(KafkaSink(f"{name}-all", value=Json()), name="all")
numbers.filter(lambda value: value % 10 == 0).sink(KafkaSink(f"{name}-tens", value=Json()), name="tens")
odd.sink(FileSink(f"{folder}/out"), name="files")
"""


def committed(servers: str, topic: str) -> list[int]:
    """Return all values that a read_committed reader sees."""
    return sorted(int(record.value or b"") for record in read_topic(servers, topic))


@pytest.mark.parametrize(
    "point",
    [pytest.param(CrashPoint.BEFORE_SNAPSHOT, marks=pytest.mark.proof), CrashPoint.BETWEEN_COMMITS],
    ids=lambda point: point.name.lower(),
)
def test_every_sink_of_a_graph_has_every_record_once_although_a_subtask_was_killed(
    broker: Broker, topic: Callable[[], str], tmp_path: Path, point: CrashPoint
) -> None:
    name, servers = topic(), broker.bootstrap_servers
    for suffix in ("odd", "even", "all", "tens"):
        create_topic(servers, f"{name}-{suffix}", 2)
    for suffix, first in (("odd", 1), ("even", 0)):
        numbers = range(first, 2 * RECORDS, 2)
        produce(servers, f"{name}-{suffix}", (Write(b"%d" % value, partition=value // 2 % 2) for value in numbers))
    job = SlowJob(servers, name, tmp_path, JOB, beside="file_sink.py")
    job.survive(ArmedFault(point, checkpoint=3, subtask=0))
    every = list(range(2 * RECORDS))
    assert committed(servers, f"{name}-all") == every
    assert committed(servers, f"{name}-tens") == every[::10]
    lines = Counter(line for file in (tmp_path / "out").iterdir() for line in file.read_text().splitlines())
    assert lines == Counter(map(str, every[1::2]))
