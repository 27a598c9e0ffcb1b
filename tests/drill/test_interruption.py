"""A reader that stands still in its middle, and the kill that comes there once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.job_events import event
from twopc import events
from twopc.drill.interruption import InterruptedReader, Interruption, middles
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import SubtaskIndex
from twopc.record import Batch, Row
from twopc.source import SourceReader

IN = TopicPartition("in", 0)


class Counting(SourceReader):
    """Ten offsets; hands over nothing, and goes on by what is asked for."""

    at = 0

    def poll(self, timeout: float, most: int) -> Batch | None:
        self.at = min(10, self.at + most)
        return None

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        return (PartitionPosition(IN, "id", Position(self.at)).to_split_position(),)

    def finished(self) -> bool:
        return self.at == 10


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        try:
            yield process
        finally:
            process.kill()


def test_the_middle_of_a_partition_is_halfway_from_where_it_is_read() -> None:
    assert middles({IN: Position(4)}, {IN: Position(11)}) == {IN: 7}


def test_a_reader_reads_to_the_middle_and_says_that_it_stands_there(tmp_path: Path) -> None:
    reader = InterruptedReader(Counting(), {IN: Position(7)}, tmp_path, SubtaskIndex(2), "source-1")
    for _ in range(3):
        assert not (tmp_path / "stands-2-source-1").exists() or str(reader.positions()[0]) == "in[0]@7"
        reader.poll(0.0, 5)
    assert (str(reader.positions()[0]), (tmp_path / "stands-2-source-1").exists()) == ("in[0]@7", True)


def test_every_process_is_killed_when_checkpoints_have_completed_in_the_middle(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    interruption = Interruption(tmp_path, 1)
    reader = InterruptedReader(Counting(), {IN: Position(7)}, tmp_path, SubtaskIndex(0), "source-1")
    interruption.note(event(events.SubtaskAttached, pid=sleeper.pid))
    for _ in range(5):
        interruption.note(event(events.CheckpointCompleted))
        assert sleeper.poll() is None, "not before it stands in the middle"
    reader.poll(0.0, 9)
    reader.poll(0.0, 9)
    for _ in range(4):
        interruption.note(event(events.CheckpointCompleted))
    assert sleeper.wait(60) == -9
    assert interruption.struck_at is not None
    reader.poll(0.0, 9)
    assert reader.finished(), "and the next reads to the end"


def test_where_no_checkpoint_completes_it_goes_on_and_was_not_struck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twopc.drill.interruption.PATIENCE_SECONDS", -1.0)
    interruption = Interruption(tmp_path, 1)
    reader = InterruptedReader(Counting(), {IN: Position(0)}, tmp_path, SubtaskIndex(0), "source-1")
    reader.poll(0.0, 9)
    for _ in range(3):
        interruption.note(event(events.SubtaskProgress))
    reader.poll(0.0, 10)
    assert (interruption.struck_at, reader.finished()) == (None, True)


def test_a_subtask_stands_in_the_middle_when_all_its_sources_do(tmp_path: Path) -> None:
    interruption = Interruption(tmp_path, 1, sources=2)
    InterruptedReader(Counting(), {}, tmp_path, SubtaskIndex(0), "web").poll(0.0, 9)
    interruption.note(event(events.SubtaskProgress))
    assert interruption.stood_at is None
    at_end = Counting()
    at_end.at = 10
    assert InterruptedReader(at_end, {}, tmp_path, SubtaskIndex(0), "app").finished(), "and so nobody polls it"
    interruption.note(event(events.SubtaskProgress))
    assert interruption.stood_at is not None
