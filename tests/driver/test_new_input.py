"""Splits that are new while the job runs: what is told, refused, and read by the next attempt."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from twopc import ConfigurationError, Job, Json, KafkaSource, RunSettings, Unavailable, events
from twopc.context import JobContext, SubtaskContext
from twopc.driver.edge import Edge
from twopc.driver.effects import UNTIMED, Tell
from twopc.driver.new_input import FindNewSplits, InputHasGrown, NewInput, looks_for_new_input
from twopc.driver.progress import AttemptProgress
from twopc.driver.restore_checks import moved_keys_of
from twopc.driver.supervision import Supervision
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import AttemptId
from twopc.sink import Committer, Sink, SinkWriter
from twopc.source import Source, SourcePlanner, SourceReader, Split

CONTEXT = JobContext("job", AttemptId(3), 1, RunSettings(checkpoint_dir="unused"))
READ = (Split("in[0]", 0, 0, None, "in"),)
NEW = Split("in[1]", 1, 0, None, "in")


def looking() -> NewInput:
    """What looks every minute, since time 0."""
    new_input = NewInput(CONTEXT, READ, 60.0)
    assert not list(new_input.due(0.0))
    return new_input


def told(new_input: NewInput, answer: list[Split] | Exception, completed: int = 1, now: float = 61.0) -> list[Any]:
    """Have a look end with this answer; return the events of it."""
    list(new_input.due(now))
    return [each.event for each in new_input.answered(answer, completed, now) if isinstance(each, Tell)]


def test_one_looks_when_the_interval_is_over_and_once_at_a_time() -> None:
    new_input = looking()
    deadlines = [new_input.deadline]
    assert list(new_input.due(60.0)) == [FindNewSplits(CONTEXT, READ)]
    assert list(new_input.due(200.0)) == []
    deadlines.append(new_input.deadline)
    assert not list(new_input.answered([], 1, 201.0))
    assert [*deadlines, new_input.deadline] == [60.0, None, 261.0]


def test_what_is_found_is_told_and_read_by_the_next_attempt_after_a_checkpoint() -> None:
    new_input = looking()
    assert told(new_input, [NEW], completed=4) == [events.NewInputFound("job", AttemptId(3), UNTIMED, splits="in[1]")]
    new_input.look(4)
    with pytest.raises(InputHasGrown, match=r"in\[1\]"):
        new_input.look(5)
    assert not list(new_input.due(1000.0)), "the next attempt finds out what else there is"


def test_what_can_t_be_read_is_told_once_and_ends_nothing() -> None:
    new_input = looking()
    [refused] = told(new_input, ConfigurationError("no"))
    assert isinstance(refused, events.NewInputRefused)
    assert refused.message.startswith("no. The job goes on without it")
    assert told(new_input, ConfigurationError("no"), now=200.0) == []
    assert len(told(new_input, ConfigurationError("another"), now=300.0)) == 1
    new_input.look(9)


@pytest.mark.parametrize("answer", [Unavailable("no broker"), ValueError("a bug")])
def test_a_look_that_fails_ends_nothing_and_comes_again(answer: Exception) -> None:
    new_input = looking()
    assert told(new_input, answer) == []
    new_input.look(9)
    assert new_input.deadline == 121.0


def test_whoever_stops_does_not_start_again_for_new_input() -> None:
    new_input = looking()
    told(new_input, [NEW])
    progress = AttemptProgress(CONTEXT.attempt, completed=2)
    progress.liveness.attached.add(cast(Any, 0))
    supervision = Supervision(CONTEXT, progress, new_input=new_input)
    assert supervision.look(62.0, stop_wanted=True) is False
    with pytest.raises(InputHasGrown):
        supervision.look(62.0, stop_wanted=False)


class Growing(Source, SourcePlanner):
    """A source whose inputs have so many partitions."""

    discover_ms = 1_000

    def __init__(self, **partitions: int) -> None:
        self.inputs, self.partitions = tuple(partitions), partitions

    def open_planner(self, context: JobContext) -> SourcePlanner:
        return self

    def open_reader(self, context: SubtaskContext, splits: Sequence[Split]) -> SourceReader:
        raise AssertionError

    def reads(self, name: str) -> bool:
        return name in self.partitions

    def input_of(self, split: str) -> str:
        return split.partition("/")[0]

    def plan(self, restored: Mapping[str, SplitPosition], bounded: bool) -> list[Split]:
        return self.added([])

    def added(self, read: Sequence[Split]) -> list[Split]:
        known = {split.id for split in read}
        every = (Split(f"{n}/{k}", k, 0, None) for n, number in self.partitions.items() for k in range(number))
        return [split for split in every if split.id not in known]


class Narrow(Sink):
    """Takes what comes of two partitions of a number, and no more."""

    def check_splits(self, context: JobContext, splits: Sequence[Split]) -> None:
        if any(split.partition > 1 for split in splits):
            raise ConfigurationError("too many for the sink")

    def open_writer(self, context: SubtaskContext) -> SinkWriter:
        raise AssertionError

    def open_committer(self, context: JobContext) -> Committer:
        raise AssertionError


def job_of(*sources: Source, keyed: bool) -> Any:
    job = Job("job")
    for number, source in enumerate(sources):
        stream = job.source(source, name=f"of-{number}")
        if keyed:
            stream = stream.stateful_map(lambda state, value: (state, value), name=f"count-{number}", state=Json())
        stream.sink(Narrow(), name=f"out-{number}")
    return job.definition()


def found(*sources: Growing, keyed: bool = False, **grown: int) -> list[str]:
    """Return the splits that are found when the first source has other inputs than when it was planned."""
    definition = job_of(*sources, keyed=keyed)
    edge = cast(Edge, SimpleNamespace(definition=definition, source=definition.source))
    read = tuple(definition.source.open_planner(CONTEXT).plan({}, False))
    sources[0].partitions |= grown
    return [f"{split.source} {split.id}" for split in FindNewSplits(CONTEXT, read).carry_out(edge)]


def test_new_partitions_and_new_inputs_are_found_with_the_source_that_reads_them() -> None:
    assert found(Growing(a=1), Growing(b=1), a=2, c=1) == ["of-0 a/1", "of-0 c/0"]


def test_a_source_that_did_not_ask_for_it_is_not_asked() -> None:
    fixed = Growing(a=1)
    fixed.discover_ms = None  # type: ignore[assignment]
    assert found(fixed, Growing(b=1), a=2) == []


def test_more_partitions_of_what_comes_to_state_by_key_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"a had 1 partitions when it was begun and has 2 now"):
        found(Growing(a=1), keyed=True, a=2)


def test_a_new_input_of_as_many_partitions_joins_the_partition_groups() -> None:
    assert found(Growing(a=2), keyed=True, b=2) == ["of-0 b/0", "of-0 b/1"]


def test_a_new_input_of_another_number_of_partitions_does_not() -> None:
    with pytest.raises(ConfigurationError, match=r"different numbers of partitions \(a: 2, b: 1\)"):
        found(Growing(a=2), keyed=True, b=1)


def test_a_new_input_that_another_source_reads_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="of-1, of-0 read the same input, b/0"):
        found(Growing(a=1), Growing(b=1), b=1)


def test_what_a_sink_does_not_take_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="too many for the sink"):
        found(Growing(a=2), a=3)


def test_the_shortest_interval_of_the_sources_is_the_job_s() -> None:
    every = [KafkaSource("a", discover="5m"), KafkaSource("b"), KafkaSource("c", discover="2s")]
    assert job_of(*every, keyed=False).source.discover_ms == 2_000
    assert job_of(KafkaSource("a"), keyed=False).source.discover_ms is None


@pytest.mark.parametrize("written", ["5", "0s", 7, "-1s"])
def test_an_interval_that_is_none_is_refused(written: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"discover|every"):
        KafkaSource("a", discover=written)


def test_what_is_not_new_is_not_looked_for_in_a_bounded_read() -> None:
    source = job_of(KafkaSource("a", discover="5m"), keyed=False).source
    for until_end in (True, False):
        settings = dataclasses.replace(CONTEXT.settings, until_end=until_end)
        looks = looks_for_new_input(dataclasses.replace(CONTEXT, settings=settings), source, READ)
        assert (looks is None) is until_end


def test_an_operator_is_named_whose_keys_are_in_other_partitions_than_when_it_was_restored() -> None:
    definition = job_of(Growing(a=2), Growing(b=1), keyed=True)
    splits = definition.source.open_planner(CONTEXT).plan({}, False)
    moved = moved_keys_of(definition, {"a/0", "b/0"}, splits)
    assert list(moved) == ["count-0"]
    assert "a had 1 partitions when it was begun and has 2 now" in moved["count-0"]
    assert "--drop-states count-0" in moved["count-0"]
    assert moved_keys_of(definition, {"b/0"}, splits) == {}, "what was not read before has no states"
