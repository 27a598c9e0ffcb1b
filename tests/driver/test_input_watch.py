"""Splits that are new while the job runs: what is told, refused, and read by the next attempt."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from twopc import ConfigurationError, Job, Json, KafkaSource, events
from twopc.connect import RunSettings
from twopc.context import JobContext, SubtaskContext
from twopc.driver.edge import Edge
from twopc.driver.effects import UNTIMED, Log, Tell
from twopc.driver.input_watch import (
    FindHidden,
    FindKeys,
    InputHasGrown,
    InputWatch,
    LookAtInput,
    NoteInput,
    keys_now,
    watch_of,
)
from twopc.driver.input_watch import tell_what_a_bounded_read_leaves as tell_left
from twopc.driver.progress import AttemptProgress
from twopc.driver.restore_checks import moved_keys_of
from twopc.driver.supervision import Supervision
from twopc.errors import Unavailable
from twopc.input_now import HiddenInput, InputNow, KeysNow
from twopc.key_spread import KeySample
from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import AttemptId
from twopc.sink import Committer, Sink, SinkWriter
from twopc.source import Source, SourcePlanner, SourceReader, Split

CONTEXT = JobContext("job", AttemptId(3), 1, RunSettings(checkpoint_dir="unused"))
READ = (Split("in[0]", 0, 0, None, "in"),)
NEW = Split("in[1]", 1, 0, None, "in")


FIRST, SECOND = 10.0, 20.0
OPEN = HiddenInput("in[0]", 100, "in[0] can be read up to offset 100")


def looking() -> InputWatch:
    """What looks after ten seconds, ten more, and then every minute, since time 0."""
    watch = InputWatch(CONTEXT, READ, 60.0)
    assert not list(watch.due(0.0))
    return watch


def told(watch: InputWatch, answer: InputNow | Exception, completed: int = 1, now: float = 61.0) -> list[Any]:
    """Have a look end with this answer; return the events of it."""
    list(watch.due(now))
    return [each.event for each in watch.answered(answer, completed, now) if isinstance(each, Tell)]


def looks(watch: InputWatch, now: float) -> list[LookAtInput]:
    return [each for each in watch.due(now) if isinstance(each, LookAtInput)]


def noted(watch: InputWatch, answer: InputNow) -> list[tuple[str, ...]]:
    """Have a look end with this answer; return what the coordinator is told next."""
    list(watch.due(1000.0))
    list(watch.answered(answer, 1, 1000.0))
    return [each.notes for each in watch.due(1000.0) if isinstance(each, NoteInput)]


def test_whoever_asks_is_told_what_is_hidden_and_not_read_until_that_has_changed() -> None:
    watch = looking()
    assert noted(watch, InputNow()) == []
    assert noted(watch, InputNow(hidden=(OPEN, HiddenInput("in[1]", 7)), refused="uneven")) == [
        (OPEN.cause, "there is new input that is not read: uneven")
    ]
    assert noted(watch, InputNow(hidden=(OPEN,), refused="uneven")) == []
    assert noted(watch, InputNow()) == [()]
    many = tuple(HiddenInput(f"in[{number}]", 7, f"in[{number}] is hidden") for number in range(12))
    [notes] = noted(watch, InputNow(hidden=many))
    assert (len(notes), notes[-1]) == (11, "and 2 more partitions")


def test_one_looks_twice_soon_then_when_the_interval_is_over_and_once_at_a_time() -> None:
    watch = looking()
    deadlines = [watch.deadline]
    for now in (FIRST, SECOND):
        assert list(watch.due(now)) == [LookAtInput(CONTEXT, READ, frozenset(), keys=True)]
        assert list(watch.due(200.0)) == []
        assert watch.deadline is None
        assert not list(watch.answered(InputNow(), 1, now))
        deadlines.append(watch.deadline)
    assert deadlines == [10.0, 20.0, 80.0]


def test_what_is_found_is_told_and_read_by_the_next_attempt_after_a_checkpoint() -> None:
    watch = looking()
    found = events.NewInputFound("job", AttemptId(3), UNTIMED, splits="in[1]")
    assert told(watch, InputNow((NEW,)), completed=4) == [found]
    watch.look(4)
    with pytest.raises(InputHasGrown, match=r"in\[1\]"):
        watch.look(5)
    assert not list(watch.due(1000.0)), "the next attempt finds out what else there is"


def test_what_is_not_read_is_told_once_and_ends_nothing() -> None:
    watch = looking()
    [refused] = told(watch, InputNow(refused="no"))
    assert isinstance(refused, events.NewInputRefused)
    assert refused.message == "no"
    assert told(watch, InputNow(refused="no"), now=200.0) == []
    assert len(told(watch, InputNow(refused="another"), now=300.0)) == 1
    watch.look(9)


@pytest.mark.parametrize("answer", [Unavailable("no broker"), ValueError("a bug")])
def test_a_look_that_fails_ends_nothing_and_comes_again(answer: Exception) -> None:
    watch = looking()
    assert told(watch, answer, now=FIRST) == []
    watch.look(9)
    assert watch.deadline == SECOND


def test_what_is_hidden_is_named_and_told_once_where_it_is_so_at_the_next_look_too() -> None:
    watch = looking()
    assert told(watch, InputNow(hidden=(HiddenInput("in[0]", 100),)), now=FIRST) == []
    [look] = looks(watch, SECOND)
    assert look.before == frozenset([("in[0]", 100)]), "only there the brokers are asked whose it is"
    [hidden] = told(watch, InputNow(hidden=(OPEN,)), now=SECOND)
    assert hidden == events.InputHidden("job", AttemptId(3), UNTIMED, split="in[0]", message=OPEN.cause)
    assert told(watch, InputNow(hidden=(OPEN,)), now=80.0) == []
    assert told(watch, InputNow(hidden=(HiddenInput("in[0]", 160),)), now=140.0) == [], "another one: may be short"
    assert told(watch, InputNow(), now=200.0) == []
    assert len(told(watch, InputNow(hidden=(OPEN,)), now=260.0)) == 1, "it was readable meanwhile"


@pytest.mark.parametrize(
    ("keys", "asked_again"),
    [(KeysNow(more=True), True), (KeysNow(), False), (KeysNow(("key 'k' is in a[0], b[1]",), more=True), False)],
    ids=["too few records", "all is known", "told"],
)
def test_keys_are_looked_at_until_there_is_something_to_tell_or_nothing_more_to_find(
    keys: KeysNow, asked_again: bool
) -> None:
    watch = looking()
    list(watch.due(FIRST))
    told = [each.message for each in watch.answered(InputNow(keys=keys), 1, FIRST) if isinstance(each, Log)]
    assert told == list(keys.apart)
    [look] = looks(watch, SECOND)
    assert look.keys is asked_again
    assert not list(watch.answered(InputNow(), 1, SECOND)), "what nobody asked for is not known"


def test_keys_are_asked_of_what_comes_to_state_by_key_alone() -> None:
    definition = job_of(Growing(a=2), Growing(b=2), keyed=True)
    splits = definition.source.open_planner(CONTEXT).plan({}, False)
    now = keys_now(definition, Apart(), splits)
    assert [why.partition(":")[0] for why in now.apart] == [
        f"'count-{number}' keeps a state for each key, and key 'k' is in {name}[0], {name}[1]"
        for number, name in enumerate("ab")
    ]
    assert now.more
    assert keys_now(job_of(Growing(a=2), keyed=False), Apart(), READ) == KeysNow()


def test_a_bounded_read_tells_of_all_that_is_hidden_where_it_ends_and_of_keys_that_are_apart() -> None:
    settings = dataclasses.replace(CONTEXT.settings, until_end=True)
    context, source = dataclasses.replace(CONTEXT, settings=settings), KafkaSource("in")
    script = tell_left(context, source, READ)
    assert next(script) == FindKeys(context, READ)
    assert script.send(KeysNow(("key 'k' is in a[0], b[1]",))) == Log(
        logging.WARNING, "key 'k' is in a[0], b[1]", never_hidden=True
    )
    assert next(script) == FindHidden(context, READ)
    said = [script.send([OPEN]), *script]
    message = f"{OPEN.cause}. This run ends before it (--until-end): run it again when that transaction has ended"
    hidden = events.InputHidden("job", AttemptId(3), UNTIMED, split="in[0]", message=message)
    assert [each.event for each in said if isinstance(each, Tell)] == [hidden]
    assert list(tell_left(CONTEXT, source, READ)) == [], "a run without an end reads it when it can"


def test_whoever_stops_does_not_start_again_for_new_input() -> None:
    watch = looking()
    told(watch, InputNow((NEW,)))
    progress = AttemptProgress(CONTEXT.attempt, completed=2)
    progress.liveness.attached.add(cast(Any, 0))
    supervision = Supervision(CONTEXT, progress, input_watch=watch)
    assert supervision.look(62.0, stop_wanted=True) is False
    with pytest.raises(InputHasGrown):
        supervision.look(62.0, stop_wanted=False)


class Growing(Source, SourcePlanner):
    """A source whose inputs have so many partitions."""

    watch_ms = 1_000

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


class Apart(Growing):
    """A source of which each input has a key in two partitions."""

    def key_samples(self, read: Sequence[Split]) -> list[KeySample]:
        read_of = {split.source: self.input_of(split.id) for split in read}
        return [KeySample(name, {b"k": frozenset([0, 1])}, source=source) for source, name in read_of.items()]


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


def found(*sources: Growing, keyed: bool = False, **grown: int) -> InputNow:
    """Return what is found when the first source has other inputs than when it was planned."""
    definition = job_of(*sources, keyed=keyed)
    edge = cast(Edge, SimpleNamespace(definition=definition, source=definition.source))
    read = tuple(definition.source.open_planner(CONTEXT).plan({}, False))
    sources[0].partitions |= grown
    return LookAtInput(CONTEXT, read, frozenset()).carry_out(edge)


def added(*sources: Growing, keyed: bool = False, **grown: int) -> list[str]:
    """Return the splits that are found, of which none is refused."""
    now = found(*sources, keyed=keyed, **grown)
    assert not now.refused
    return [f"{split.source} {split.id}" for split in now.added]


def test_new_partitions_and_new_inputs_are_found_with_the_source_that_reads_them() -> None:
    assert added(Growing(a=1), Growing(b=1), a=2, c=1) == ["of-0 a/1", "of-0 c/0"]


def test_a_source_that_is_not_watched_is_not_asked() -> None:
    fixed = Growing(a=1)
    fixed.watch_ms = None  # type: ignore[assignment]
    assert added(fixed, Growing(b=1), a=2) == []


def test_what_a_source_does_not_look_for_is_told_and_not_read() -> None:
    off = Growing(a=1)
    off.reads_new = False
    now = found(off, Growing(b=1), a=3)
    assert not now.added
    assert now.refused.startswith("a/1, a/2; this job does not look for it (discovery)")


@pytest.mark.parametrize(
    ("sources", "keyed", "grown", "said"),
    [
        ([Growing(a=1)], True, {"a": 2}, r"a had 1 partitions when it was begun and has 2 now"),
        ([Growing(a=2)], True, {"b": 1}, r"different numbers of partitions (a: 2, b: 1)"),
        ([Growing(a=1), Growing(b=1)], False, {"b": 1}, "of-1, of-0 read the same input, b/0"),
        ([Growing(a=2)], False, {"a": 3}, "too many for the sink"),
    ],
    ids=["more partitions of what comes to state by key", "another number of them", "read elsewhere", "no sink"],
)
def test_what_can_not_be_read_is_refused(sources: list[Growing], keyed: bool, grown: dict[str, int], said: str) -> None:
    now = found(*sources, keyed=keyed, **grown)
    assert not now.added
    assert said in now.refused
    assert now.refused.endswith(". The job goes on without it, until it starts again: that is refused then")


def test_a_new_input_of_as_many_partitions_joins_the_partition_groups() -> None:
    assert added(Growing(a=2), keyed=True, b=2) == ["of-0 b/0", "of-0 b/1"]


def test_the_shortest_interval_of_the_sources_is_the_job_s_and_a_minute_unless_said() -> None:
    every = [KafkaSource("a", discovery="5m"), KafkaSource("b", discovery="off"), KafkaSource("c", discovery="2s")]
    assert job_of(*every, keyed=False).source.watch_ms == 2_000
    for source in (KafkaSource("a"), KafkaSource("a", discovery="off")):
        assert job_of(source, keyed=False).source.watch_ms == 60_000


@pytest.mark.parametrize("written", ["5", "0s", 7, "-1s"])
def test_an_interval_that_is_none_is_refused(written: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"discovery|every"):
        KafkaSource("a", discovery=written)


def test_what_is_not_new_is_not_looked_for_in_a_bounded_read() -> None:
    source = job_of(KafkaSource("a"), keyed=False).source
    for until_end in (True, False):
        settings = dataclasses.replace(CONTEXT.settings, until_end=until_end)
        looks = watch_of(dataclasses.replace(CONTEXT, settings=settings), source, READ)
        assert (looks is None) is until_end


def test_an_operator_is_named_whose_keys_are_in_other_partitions_than_when_it_was_restored() -> None:
    definition = job_of(Growing(a=2), Growing(b=1), keyed=True)
    splits = definition.source.open_planner(CONTEXT).plan({}, False)
    moved = moved_keys_of(definition, {"a/0", "b/0"}, splits)
    assert list(moved) == ["count-0"]
    assert "a had 1 partitions when it was begun and has 2 now" in moved["count-0"]
    assert "--drop-states count-0" in moved["count-0"]
    assert moved_keys_of(definition, {"b/0"}, splits) == {}, "what was not read before has no states"
