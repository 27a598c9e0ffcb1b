"""Stream time that a checkpoint has too far ahead of the clock is told, and set back with all state kept."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from twopc import Context, Job, Json, KafkaSink, KafkaSource, MapState, Processor, Record, String, Tumbling, ValueState
from twopc.graph import JobDefinition
from twopc.operators.time_ahead import Bound, say_times_ahead, set_time_back
from twopc.operators.turn import Turn
from twopc.state.keyed import KeyedState
from twopc.state.layout import StateName
from twopc.state.memory import MemoryBackend
from twopc.testing.rows import InputRow, batch_of
from twopc.verify.paths import Paths
from twopc.verify.replay import Replay

HOUR_MS = 3_600_000
NOW_MS = 1_750_000_000_000 // HOUR_MS * HOUR_MS
DAY_MS = 24 * HOUR_MS
FAR_MS = NOW_MS + 1_000 * DAY_MS
UNBOUNDED_MS = 10**15
BOUND = Bound(NOW_MS, NOW_MS + DAY_MS)


class FirstOfDay(Processor):
    """The first of each key in 24 hours, and how many there were of its kinds in that time."""

    seen = ValueState(Json(), ttl="24h")
    kinds = MapState(Json(), key=String(), ttl="24h")
    total = ValueState(Json())

    def process(self, record: Record, context: Context) -> Iterator[Record]:
        self.kinds.put(record.value, 1)
        self.total.set((self.total.get() or 0) + 1)
        if self.seen.get() is None:
            self.seen.set(1)
            yield record.replace(value=[record.value, len(self.kinds.keys()), self.total.get()])


def job() -> JobDefinition:
    job = Job("ahead")
    read = job.source(KafkaSource("in", key=String(), value=String()))
    read.process(FirstOfDay(), name="first").sink(KafkaSink("firsts", key=String(), value=Json()))
    hours = read.window(Tumbling("1h")).count(name="hours").final().map(lambda window: [window.start, window.value])
    hours.sink(KafkaSink("hours", key=String(), value=Json()))
    return job.definition()


def all_of(operator: str, name: str) -> tuple[StateName, int, bytes]:
    return StateName(operator, name), 0, b""


class Played:
    """A job whose attempts follow one another on one state."""

    def __init__(self) -> None:
        self.backend = MemoryBackend()
        self.offset = 0

    def play(self, *records: tuple[str, str, int]) -> list[tuple[str, str, object]]:
        """Put records of key, value and time through; return topic, key and value of all that comes out."""
        store = KeyedState(self.backend)
        rows = [
            InputRow(value, key, timestamp_=at, offset_=self.offset + n) for n, (key, value, at) in enumerate(records)
        ]
        self.offset += len(rows)
        with Replay(Paths.of(job()), store, max_time_ahead_ms=UNBOUNDED_MS) as replay:
            made = [each for row in rows for each in replay.make(Turn.of("source-1", batch_of([row])))]
            replay.write_back()
        return [
            (each.topic, (each.expected.key or b"").decode(), json.loads(each.expected.value or b"")) for each in made
        ]


@pytest.fixture
def played() -> Played:
    """State of now, and stream time that one record has moved by a thousand days."""
    played = Played()
    played.play(("a", "early", NOW_MS - 1), ("odd", "far", FAR_MS), ("b", "meanwhile", NOW_MS))
    return played


def test_time_goes_on_from_the_clock_and_what_was_not_yet_deleted_is_there() -> None:
    played = Played()
    keys = [f"k{n}" for n in range(200)]
    played.play(*((key, "early", NOW_MS - 1) for key in keys), ("odd", "far", FAR_MS))
    set_time_back(job().operators, played.backend, BOUND)
    again = {key for topic, key, _ in played.play(*((key, "again", NOW_MS + 1) for key in keys)) if topic == "firsts"}
    assert len(again) < 100, "a record deletes few values that have outlived their time"
    made = played.play(("k0", "next day", NOW_MS + DAY_MS + HOUR_MS))
    assert ("firsts", "k0", ["next day", 1, 3]) in made, "what has no time to live is there"


def test_what_was_written_meanwhile_lives_as_if_it_were_written_by_the_clock(played: Played) -> None:
    set_time_back(job().operators, played.backend, BOUND)
    assert played.play(("b", "again", NOW_MS + DAY_MS - 1)) == []
    assert ("firsts", "b", ["later", 2, 3]) in played.play(("b", "later", NOW_MS + DAY_MS))
    played.play(*(("c", "c", NOW_MS + 10 * DAY_MS + n) for n in range(10)))
    kept = {key for key, _ in KeyedState(played.backend).scan(*all_of("first", "seen"))}
    assert kept == {b"c"}, "nothing is left that will never expire"


def test_windows_close_again_by_the_time_of_the_records(played: Played) -> None:
    set_time_back(job().operators, played.backend, BOUND)
    closed = played.play(("a", "x", NOW_MS + 1), ("a", "y", NOW_MS + HOUR_MS))
    assert ("hours", "a", [NOW_MS, 1]) in closed


def test_a_time_that_records_may_reach_is_left_as_it_is() -> None:
    played = Played()
    played.play(("a", "x", NOW_MS + DAY_MS))
    before = list(KeyedState(played.backend).scan(*all_of("first", "$stream-time")))
    set_time_back(job().operators, played.backend, BOUND)
    assert list(KeyedState(played.backend).scan(*all_of("first", "$stream-time"))) == before


def test_it_is_told_once_an_operator_and_names_the_setting(played: Played, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        say_times_ahead(played.backend, BOUND)
    assert [message.split(" is up to ")[0] for message in caplog.messages] == [
        "the stream time of 'first'",
        "the stream time of 'hours'",
    ]
    assert all("--set-time-back" in message for message in caplog.messages)
    caplog.clear()
    set_time_back(job().operators, played.backend, BOUND)
    say_times_ahead(played.backend, BOUND)
    assert all("is set back to" in message for message in caplog.messages)
