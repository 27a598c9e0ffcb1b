"""The second sink of the extension point, end to end: Kafka to files, through a kill -9."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.slow_job import SlowJob
from twopc.faults.armed_faults import ArmedFault
from twopc.faults.points import CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = pytest.mark.drill

RECORDS = 20_000
"""More than are read before the third checkpoint, however slow a machine is at those: records are, until then, too."""

JOB = """
from file_sink import FileSink
from twopc import Job, Json, KafkaSource

job = Job(name)
job.source(KafkaSource(name, value=Json())).map(slowly).sink(FileSink(f"{folder}/out"))
"""


@pytest.mark.parametrize(
    "point",
    [
        CrashPoint.BEFORE_COMMIT,
        pytest.param(CrashPoint.AFTER_ACK, marks=pytest.mark.proof),
        pytest.param(CrashPoint.AFTER_COMMIT, marks=pytest.mark.proof),
    ],
    ids=lambda point: point.name.lower(),
)
def test_files_hold_every_record_once_although_a_subtask_was_killed(
    broker: Broker, topic: Callable[[], str], tmp_path: Path, point: CrashPoint
) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name, 2)
    produce(broker.bootstrap_servers, name, (Write(b"%d" % number, partition=number % 2) for number in range(RECORDS)))
    job = SlowJob(broker.bootstrap_servers, name, tmp_path, JOB, beside="file_sink.py")
    job.survive(ArmedFault(point, checkpoint=3, subtask=0))
    files = list((tmp_path / "out").iterdir())
    assert not [file for file in files if file.name.startswith(".")], "a hidden file was left behind"
    lines = Counter(line for file in files for line in file.read_text().splitlines())
    assert lines == Counter(str(number) for number in range(RECORDS))
