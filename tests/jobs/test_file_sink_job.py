"""The second sink of the extension point, end to end: Kafka to files, through a kill -9."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = pytest.mark.drill

EXAMPLES = Path(__file__).parents[2] / "examples"
RECORDS = 20_000
"""More than are read before the third checkpoint, however slow a machine is at those: records are, until then, too."""

JOB = """
import os, time
from pathlib import Path
from file_sink import FileSink
from twopc import Job, Json, KafkaSource

def slowly(value):
    if not Path(os.environ["STRUCK"]).exists():
        time.sleep(0.002)
    return value

job = Job(os.environ["JOB_NAME"])
job.source(KafkaSource(os.environ["JOB_NAME"], value=Json())).map(slowly).sink(FileSink(os.environ["OUT"]))
"""


@pytest.mark.parametrize(
    "point",
    [CrashPoint.AFTER_ACK, CrashPoint.BEFORE_COMMIT, CrashPoint.AFTER_COMMIT],
    ids=lambda point: point.name.lower(),
)
def test_files_hold_every_record_once_although_a_subtask_was_killed(
    broker: Broker, topic: Callable[[], str], tmp_path: Path, point: CrashPoint
) -> None:
    name = topic()
    create_topic(broker.bootstrap_servers, name, 2)
    produce(broker.bootstrap_servers, name, (Write(b"%d" % number, partition=number % 2) for number in range(RECORDS)))
    shutil.copy(EXAMPLES / "file_sink.py", tmp_path)
    (tmp_path / "job.py").write_text(JOB)
    once = tmp_path / "reached"
    finished = twopc(
        *("run", str(tmp_path / "job.py"), "-b", broker.bootstrap_servers, "--checkpoint-dir", str(tmp_path / "ck")),
        *("-p", "2", "--checkpoint-interval", "200ms", "--host", "process", "--until-end", "-o", "json"),
        JOB_NAME=name,
        OUT=str(tmp_path / "out"),
        STRUCK=str(once),
        **{VARIABLE: f"{point.name},checkpoint=3,subtask=0,once={once}"},
    )
    assert finished.code == 0, finished.err
    assert once.exists()
    assert json.loads(finished.out)["attempts"] == 2
    files = list((tmp_path / "out").iterdir())
    assert not [file for file in files if file.name.startswith(".")], "a hidden file was left behind"
    lines = Counter(line for file in files for line in file.read_text().splitlines())
    assert lines == Counter(str(number) for number in range(RECORDS))
