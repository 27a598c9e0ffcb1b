"""Sources and sinks that users write run in memory as they are, on their files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from file_sink import FileSink
from line_files import LineFiles
from table_sink import TableCommitter, TableSink, read_table

from tests.testing.memory.jobs import count
from tests.testing.memory.test_crashes import AFTER
from twopc import Batch, Job, Json, KafkaSink, KafkaSource
from twopc.connect import (
    JobContext,
    Row,
    Source,
    SourcePlanner,
    SourceReader,
    Split,
    SplitPosition,
    SubtaskContext,
)
from twopc.errors import CheckpointDeclined, Unavailable
from twopc.testing import MemoryRun
from twopc.testing.memory.run import Moment
from twopc.testing.rows import InputRow, batch_of


def lines_to_files(folder: Path) -> Job:
    job = Job("lines")
    (folder / "in").mkdir()
    job.source(LineFiles(folder / "in")).map(bytes.decode).sink(FileSink(folder / "out"))
    return job


def written(folder: Path) -> Counter[str]:
    files = (folder / "out").glob("*.jsonl")
    return Counter(json.loads(line) for file in files for line in file.read_text().splitlines())


@pytest.mark.parametrize("after", AFTER)
def test_sources_and_sinks_of_ones_own_run_as_they_are(tmp_path: Path, after: Moment) -> None:
    with MemoryRun(lines_to_files(tmp_path), parallelism=2) as run:
        (tmp_path / "in" / "a").write_text("one\ntwo\n")
        run.checkpoint()
        assert written(tmp_path) == Counter(["one", "two"])
        with (tmp_path / "in" / "a").open("a") as stream:
            stream.write("three\n")
        run.crash(after=after)
        run.checkpoint()
        assert written(tmp_path) == Counter(["one", "two", "three"])


def test_a_topic_goes_to_files(tmp_path: Path) -> None:
    job = Job("topic-to-files")
    (
        job.source(KafkaSource("in", value=Json()))
        .stateful_map(count, name="count")
        .map(lambda counted: str(counted["seen"]))
        .sink(FileSink(tmp_path / "out"))
    )
    with MemoryRun(job) as run:
        for _ in range(3):
            run.send("in", 1, b"a")
            run.crash()
        run.checkpoint()
    assert written(tmp_path) == Counter(["1", "2", "3"])


class Unreliable(FileSink):
    """Refuses the first record that it is given, as a place that is away for a moment."""

    refused: ClassVar[list[int]] = []

    def write(self, txn: Any, batch: Any) -> int:
        if not self.refused:
            self.refused.append(1)
            raise Unavailable("the place is away")
        return super().write(txn, batch)


def test_a_sink_that_is_away_for_a_moment_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Unreliable, "refused", [])
    job = Job("unreliable")
    job.source(KafkaSource("in", value=Json())).sink(Unreliable(tmp_path / "out"))
    with MemoryRun(job) as run:
        run.send("in", "a")
        run.checkpoint()
    assert written(tmp_path) == Counter("a")


class Declining(FileSink):
    """Takes no part in the first checkpoint that it is asked for."""

    declined: ClassVar[list[int]] = []

    def pre_commit(self, txn: Any, request: Any) -> Any:
        if not self.declined:
            self.declined.append(1)
            raise CheckpointDeclined("not now")
        return super().pre_commit(txn, request)


def test_a_checkpoint_that_a_sink_declines_is_raised_and_the_next_one_has_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Declining, "declined", [])
    job = Job("declining")
    job.source(KafkaSource("in", value=Json())).sink(Declining(tmp_path / "out"))
    with MemoryRun(job) as run:
        run.send("in", "a")
        with pytest.raises(CheckpointDeclined, match="not now"):
            run.checkpoint()
        assert written(tmp_path) == Counter()
        run.checkpoint()
    assert written(tmp_path) == Counter("a")


def to_table(folder: Path) -> Job:
    job = Job("table")
    job.source(KafkaSource("in", value=Json())).sink(TableSink(folder))
    return job


@pytest.mark.parametrize("after", AFTER)
def test_a_global_committer_commits_for_all_subtasks_once(tmp_path: Path, after: Moment) -> None:
    with MemoryRun(to_table(tmp_path), partitions=2, parallelism=2) as run:
        for value in ("a", "b"):
            run.send("in", value)
        run.checkpoint()
        assert sorted(read_table(tmp_path)) == ["a", "b"]
        run.send("in", "c")
        run.crash(after=after)
        run.checkpoint()
        assert sorted(read_table(tmp_path)) == ["a", "b", "c"]


def test_a_global_commit_that_fails_for_a_moment_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = TableCommitter.commit
    failed: list[int] = []

    def failing(self: TableCommitter, *arguments: Any) -> None:
        if not failed:
            failed.append(1)
            raise Unavailable("the catalog is away")
        commit(self, *arguments)

    monkeypatch.setattr(TableCommitter, "commit", failing)
    with MemoryRun(to_table(tmp_path)) as run:
        run.send("in", "a")
        run.checkpoint()
        assert list(read_table(tmp_path)) == ["a"]


class Numbers(Source, SourcePlanner, SourceReader):
    """The numbers below a bound: a source that ends by itself."""

    inputs = ("numbers",)

    def __init__(self, below: int) -> None:
        self.below = below
        self.at = 0

    def open_planner(self, context: JobContext) -> SourcePlanner:
        return self

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        start = restored["numbers"].position if restored else 0
        return [Split("numbers", 0, start, self.below)]

    def unreadable(self, positions: Iterable[SplitPosition]) -> dict[SplitPosition, str]:
        return {}

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        self.at = splits[0].start if splits else self.below
        return self

    def poll(self, timeout: float, most: int) -> Batch | None:
        rows = [InputRow(number, offset_=number) for number in range(self.at, self.below)]
        self.at = self.below
        return batch_of(rows) if rows else None

    def positions(self, waiting: Iterable[Row] = ()) -> tuple[SplitPosition, ...]:
        return (SplitPosition("numbers", 0, self.at),)

    def finished(self) -> bool:
        return self.at >= self.below

    def close(self) -> None:
        """Nothing is open."""


def test_a_job_whose_sources_end_finishes_with_a_last_checkpoint() -> None:
    job = Job("finite")
    job.source(Numbers(5)).sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        run.checkpoint()
        assert [record.value for record in run.read("out")] == [0, 1, 2, 3, 4]
        run.checkpoint()
        assert run.read("out") == []
