"""Which partition numbers have no records, and which time those follow."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.operators.kit import Node, put_through
from tests.operators.window_kit import at
from twopc.clock import ManualClock
from twopc.operators import Dataflow, WindowAggregate
from twopc.operators.window_step import Count
from twopc.protocol.facts import SplitPosition
from twopc.protocol.followed_times import FollowedTime, NumberTimes
from twopc.runtime.idle_numbers import IdleNumbers, Reading
from twopc.serde import Json
from twopc.testing.rows import batch_of
from twopc.testing.states import DictStore
from twopc.windows import Tumbling

IDLE_SECONDS = 30
STEP = WindowAggregate(Tumbling("10ms"), 0, Count(), "count", Json(), idle_ms=IDLE_SECONDS * 1_000)


class Scene:
    """Two partition numbers before a window, at stream times that a test says."""

    def __init__(self, times: Mapping[int, int]) -> None:
        nodes = [Node("in"), Node("count", ("in",), STEP), Node("out", ("count.final",))]
        self.flow = Dataflow(nodes, DictStore(), numbers=[0, 1])
        for number, time in times.items():
            put_through(self.flow, "in", batch_of(at(("k", time), partition=number)))
        self.clock = ManualClock()
        self.numbers = IdleNumbers(self.flow.timed, self.clock)

    def look(self, *read: int, processed: tuple[int, ...] | None = None, lags: tuple[int, ...] = (0, 0)) -> None:
        self.numbers.look(
            Reading(
                [SplitPosition(f"in[{number}]", number, at, "in") for number, at in enumerate(read)],
                [SplitPosition(f"in[{number}]", number, at, "in") for number, at in enumerate(processed or read)],
                {("in", f"in[{number}]"): lag for number, lag in enumerate(lags)},
                caught_up={},
                over=(),
            )
        )


def test_a_number_without_records_for_long_enough_follows_the_least_of_the_others() -> None:
    scene = Scene({0: 100, 1: 50})
    scene.look(5, 1)
    scene.clock.advance(IDLE_SECONDS * 1_000)
    scene.look(6, 1)
    assert scene.numbers.times() == (NumberTimes("count", 100, 100, rests=True, resting=50),)
    assert scene.numbers.behind([FollowedTime("count", 90)]) == [("count", 1, 90)]


def test_a_number_that_never_had_a_record_follows_the_others() -> None:
    scene = Scene({0: 100})
    scene.look(5, 0)
    assert scene.numbers.times() == (NumberTimes("count", 100, 100, holds=True),)
    scene.clock.advance(IDLE_SECONDS * 1_000)
    scene.look(6, 0)
    assert scene.numbers.times() == (NumberTimes("count", 100, 100, rests=True),)
    assert scene.numbers.behind([FollowedTime("count", 90)]) == [("count", 1, 90)]


@pytest.mark.parametrize(
    ("read", "processed", "lags"),
    [((6, 2), (6, 2), (0, 0)), ((6, 1), (6, 0), (0, 0)), ((6, 1), (6, 1), (0, 3))],
    ids=["it was read", "a record of it waits", "it lags behind"],
)
def test_a_number_that_has_records_holds_time_back(
    read: tuple[int, ...], processed: tuple[int, ...], lags: tuple[int, ...]
) -> None:
    scene = Scene({0: 100, 1: 50})
    scene.look(5, 1)
    scene.clock.advance(IDLE_SECONDS * 1_000)
    scene.look(*read, processed=processed, lags=lags)
    assert scene.numbers.times() == (NumberTimes("count", 50, 100),)
    assert scene.numbers.behind([FollowedTime("count", 90)]) == []


def test_a_number_that_was_quiet_for_less_than_that_holds_time_back() -> None:
    scene = Scene({0: 100, 1: 50})
    scene.look(5, 1)
    scene.clock.advance(IDLE_SECONDS * 1_000 - 1)
    scene.look(6, 1)
    assert scene.numbers.times() == (NumberTimes("count", 50, 100),)


def test_where_no_number_has_records_the_greatest_time_is_told_and_those_behind_follow() -> None:
    scene = Scene({0: 100, 1: 50})
    scene.look(5, 1)
    scene.clock.advance(IDLE_SECONDS * 1_000)
    scene.look(5, 1)
    assert scene.numbers.times() == (NumberTimes("count", None, 100, rests=True, resting=50),)
    assert scene.numbers.behind([FollowedTime("count", 70)]) == [("count", 1, 70)]


@pytest.mark.parametrize("last", [(1, 2), (2, 1)])
def test_a_number_of_several_splits_is_idle_when_all_of_them_are(last: tuple[int, int]) -> None:
    scene = Scene({0: 100, 1: 50})

    def look(first: int, other: int) -> None:
        held = [SplitPosition("in[1]", 1, first, "in"), SplitPosition("more[1]", 1, other, "in")]
        scene.numbers.look(Reading(held, held, {}, {}, ()))

    look(1, 1)
    scene.clock.advance(IDLE_SECONDS * 1_000)
    look(*last)
    assert scene.numbers.behind([FollowedTime("count", 90)]) == []
    scene.clock.advance(IDLE_SECONDS * 1_000)
    look(*last)
    assert scene.numbers.behind([FollowedTime("count", 90)]) == [("count", 1, 90)]
