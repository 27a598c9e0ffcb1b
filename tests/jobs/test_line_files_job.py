"""A source that isn't Kafka, end to end: lines of files to Kafka, through a kill -9, in files that grow."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.cli import CommandResult, twopc
from tests.jobs.slow_job import SLOWLY
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic, read_topic

pytestmark = pytest.mark.drill

EXAMPLES = Path(__file__).parents[2] / "examples"
LINES = 20_000
"""More than are read before the third checkpoint, however slow a machine is at those: lines are, until then, too."""

JOB = (
    SLOWLY.format(seconds=0.002)
    + """
from line_files import LineFiles
from twopc import Job, KafkaSink

job = Job(os.environ["OUT"])
job.source(LineFiles(os.environ["LINES"], pattern="*.txt")).map(slowly).sink(KafkaSink(os.environ["OUT"]))
"""
)


class Lines:
    """A folder of line files, the job that copies them to a topic, and where it keeps its checkpoints."""

    def __init__(self, folder: Path, broker: Broker, out: str) -> None:
        self.folder, self.broker, self.out = folder, broker, out
        (folder / "lines").mkdir()
        shutil.copy(EXAMPLES / "line_files.py", folder)
        (folder / "job.py").write_text(JOB)
        create_topic(broker.bootstrap_servers, out, 2)
        self.once = folder / "reached"
        self.expected: Counter[bytes] = Counter()

    def append(self, file: str, numbers: range, *, end: bytes = b"\n") -> None:
        lines = [f"{file}:{number}".encode() for number in numbers]
        with (self.folder / "lines" / file).open("ab") as stream:
            stream.write(b"\n".join(lines) + end)
        self.expected.update(lines)

    def run(self, *more: str, point: str = "") -> CommandResult:
        environment = {"OUT": self.out, "LINES": str(self.folder / "lines"), "STRUCK": str(self.once)}
        return twopc(
            *("run", str(self.folder / "job.py"), "-b", self.broker.bootstrap_servers),
            *("--checkpoint-dir", str(self.folder / "ck"), "-p", "2", "--checkpoint-interval", "200ms"),
            *("--host", "process", "--until-end", "-o", "json", *more),
            **environment,
            **({VARIABLE: point} if point else {}),
        )

    def written(self) -> Counter[bytes]:
        return Counter(record.value or b"" for record in read_topic(self.broker.bootstrap_servers, self.out))


@pytest.fixture
def lines(broker: Broker, topic: Callable[[], str], tmp_path: Path) -> Lines:
    return Lines(tmp_path, broker, topic())


@pytest.mark.parametrize(
    "point",
    [CrashPoint.AFTER_ACK, pytest.param(CrashPoint.AFTER_COMMIT, marks=pytest.mark.proof)],
    ids=lambda point: point.name.lower(),
)
def test_every_line_is_written_once_although_a_subtask_was_killed(lines: Lines, point: CrashPoint) -> None:
    for number, file in enumerate("abcdefgh"):
        lines.append(f"{file}.txt", range(number, LINES, 8))
    finished = lines.run(point=f"{point.name},checkpoint=3,subtask=0,once={lines.once}")
    assert finished.code == 0, finished.err
    assert lines.once.exists()
    assert json.loads(finished.out)["attempts"] >= 2
    assert lines.written() == lines.expected


def test_the_next_run_reads_what_has_come_since_and_nothing_else(lines: Lines) -> None:
    lines.once.touch()
    lines.append("a.txt", range(100))
    lines.append("b.txt", range(100), end=b"\nnot yet")
    assert lines.run().code == 0
    lines.append("a.txt", range(100, 150))
    lines.append("new.txt", range(50))
    again = lines.run()
    assert again.code == 0, again.err
    assert "reading on from" in again.err
    assert json.loads(again.out)["records_in"] == 100
    assert lines.written() == lines.expected


@pytest.mark.proof
def test_a_file_that_was_cut_short_is_refused_by_name(lines: Lines) -> None:
    lines.once.touch()
    lines.append("a.txt", range(100))
    assert lines.run().code == 0
    (lines.folder / "lines" / "a.txt").write_bytes(b"another\n")
    refused = lines.run()
    assert refused.code != 0
    assert "a.txt has 8 bytes now" in refused.err
    assert "--from none" in refused.err
