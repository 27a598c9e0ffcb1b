"""What a driver asks of sinks about the splits that it has planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from twopc import ConfigurationError, Job
from twopc.connect import RunSettings
from twopc.context import JobContext, SubtaskContext
from twopc.driver.actions import PlanSplits
from twopc.driver.edge import Edge
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import AttemptId
from twopc.sink import Committer, Sink, SinkWriter
from twopc.source import Source, SourcePlanner, SourceReader, Split

CONTEXT = JobContext("job", AttemptId(1), 1, RunSettings(checkpoint_dir="unused"))


class Splits(Source):
    def __init__(self, name: str, partitions: int) -> None:
        self.name, self.partitions = name, partitions

    def open_planner(self, context: JobContext) -> SourcePlanner:
        return Planner(self)

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        raise AssertionError


class Planner(SourcePlanner):
    def __init__(self, source: Splits) -> None:
        self.source = source

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        return [Split(f"{self.source.name}/{number}", number, 0, None) for number in range(self.source.partitions)]


class Narrow(Sink):
    """Takes what comes of two partitions."""

    def check_splits(self, context: JobContext, splits: Sequence[Split]) -> None:
        if len(splits) > 2:
            raise ConfigurationError(", ".join(split.id for split in splits))

    def open_writer(self, context: SubtaskContext) -> SinkWriter:
        raise AssertionError

    def open_committer(self, context: JobContext) -> Committer:
        raise AssertionError


def planned(left: int, right: int) -> list[Split]:
    """Plan a job that brings the records of the left source to a narrow sink."""
    job = Job("job")
    job.source(Splits("left", left), name="left").sink(Narrow(), name="narrow")
    job.source(Splits("right", right), name="right").sink(AnySink(), name="any")
    definition = job.definition()
    edge: Any = SimpleNamespace(definition=definition, source=definition.source)
    return PlanSplits(CONTEXT, {}, bounded=False).carry_out(cast(Edge, edge))


class AnySink(Narrow):
    def check_splits(self, context: JobContext, splits: Sequence[Split]) -> None:
        """Takes all."""


def test_a_sink_may_refuse_what_comes_to_it_before_a_record_is_read() -> None:
    with pytest.raises(ConfigurationError, match=r"^left/0, left/1, left/2$"):
        planned(3, 3)


def test_a_sink_is_not_asked_about_what_does_not_come_to_it() -> None:
    assert len(planned(2, 3)) == 5
