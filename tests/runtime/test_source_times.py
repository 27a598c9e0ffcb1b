"""The times of streams that meet, behind a `key_by`, what came through it: as they go to the marks there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pytest

from tests.operators.window_kit import at
from twopc import Job, KafkaSink, KafkaSource, Tumbling
from twopc.clock import ManualClock
from twopc.errors import UserCodeError
from twopc.graph.counted_time import with_counted_time
from twopc.operators import Dataflow, Turn
from twopc.operators.time_bound import Latest, unbounded
from twopc.protocol.facts import SplitPosition
from twopc.protocol.followed_times import NumberTimes
from twopc.runtime.idle_numbers import IdleNumbers, Reading
from twopc.runtime.repartition_times import RepartitionTimes
from twopc.testing.rows import batch_of
from twopc.testing.states import DictStore

T = TypeVar("T")


class Scene:
    """A job in which a stream `plain` meets `other`, which goes through a `key_by`."""

    def __init__(self, store: DictStore | None = None, latest: Latest = unbounded) -> None:
        self.store = DictStore() if store is None else store
        job = Job("met")
        keyed = job.source(KafkaSource("other"), name="other").key_by(lambda value: value, name="by-key")
        both = job.source(KafkaSource("plain"), name="plain").map(self.cut).merge(keyed)
        both.window(Tumbling("10ms")).count(name="count").final().map(str).sink(KafkaSink("out"))
        definition = job.definition()
        (self.sink,) = definition.marked_sinks
        operators = with_counted_time(definition.operators, definition.met_by_marks[definition.marked_sinks[self.sink]])
        self.flow = Dataflow(operators, self.store, numbers=[0, 1], latest=latest)
        self.times = RepartitionTimes.of(definition, self.flow.marks, self.store, latest)
        self.numbers = IdleNumbers(self.flow.timed, ManualClock(), self.times)

    def cut(self, value: T) -> T:
        """Be a function that somebody waits for."""
        self.flow.cut()
        return value

    def come(self, times: Mapping[int, int], before: int = 0) -> None:
        """Let records of `plain` go through, one of each number, behind so many that are earlier."""
        for number, time in times.items():
            earlier = [(b"k", time - behind) for behind in range(before, 0, -1)]
            self.flow.put(Turn.of("plain", batch_of(at(*earlier, (b"k", time), partition=number))))
            self.flow.advance()

    def told(self, lag: int) -> list[NumberTimes]:
        """Return what is told of the marks while so many records of `plain` are left to read."""
        held = [SplitPosition(f"plain[{number}]", number, 5, "plain") for number in range(2)]
        lags, at_end = {("plain", each.split): lag for each in held}, frozenset(each.split for each in held)
        caught_up = {"plain": frozenset[str]() if lag else at_end}
        self.numbers.look(Reading(held, held, lags, caught_up, over=()))
        return [each for each in self.numbers.times() if each != NumberTimes(self.sink, None, None)]


def test_a_stream_that_lags_behind_holds_the_marks_at_its_least_time() -> None:
    scene = Scene()
    scene.come({0: 70, 1: 50})
    assert scene.told(lag=1) == [NumberTimes(scene.sink, 50, 70)]


def test_one_of_which_nothing_is_left_rests_at_its_least_time() -> None:
    scene = Scene()
    scene.come({0: 70, 1: 50})
    assert scene.told(lag=0) == [NumberTimes(scene.sink, None, 70, rests=True, resting=50)]


def test_what_has_moved_it_does_not_wait_before_an_operator_however_long_a_function_takes() -> None:
    scene = Scene()
    scene.come({0: 70}, before=5)
    assert not scene.flow.waits
    assert scene.told(lag=1) == [NumberTimes(scene.sink, 70, 70, holds=True)]


def test_its_times_are_in_the_state_that_a_restart_finds() -> None:
    scene = Scene()
    scene.come({0: 70, 1: 50})
    scene.flow.write_back()
    assert Scene(scene.store).told(lag=1) == [NumberTimes(scene.sink, 50, 70)]


def test_no_record_moves_it_further_than_one_may() -> None:
    scene = Scene(latest=lambda: 60)
    scene.come({0: 60})
    with pytest.raises(UserCodeError):
        scene.come({0: 61})
    assert scene.told(lag=1) == [NumberTimes(scene.sink, 60, 60, holds=True)]
