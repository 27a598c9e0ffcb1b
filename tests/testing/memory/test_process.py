"""A processor's states, timers and stream time through crashes, checkpoints and other numbers of subtasks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.testing.memory.test_crashes import AFTER
from twopc import (
    Avro,
    Bytes,
    ConfigurationError,
    Context,
    Job,
    Json,
    KafkaSink,
    KafkaSource,
    ListState,
    MapState,
    Processor,
    Record,
    Serde,
    String,
    Tumbling,
    UserCodeError,
    ValueState,
)
from twopc.operators.turn import Turn
from twopc.testing import MemoryRun
from twopc.testing.memory.run import Moment
from twopc.testing.rows import InputRow, batch_of
from twopc.verify.paths import Paths
from twopc.verify.replay import Replay


class FirstOfId(Processor):
    """The first of each key of a day, and an hour later how many there were."""

    seen = ValueState(Json(), ttl="24h")
    count = ValueState(Json())

    def process(self, record: Record, context: Context) -> Iterator[Record]:
        self.count.set((self.count.get() or 0) + 1)
        if self.seen.get() is None:
            self.seen.set(record.timestamp)
            context.set_timer(record.value["at_ms"] + 3_600_000)
            yield record

    def on_timer(self, at: int, context: Context) -> Record:
        return Record(context.key, {"at_ms": at, "payments": self.count.get()})


job = Job("dedupe")
(
    job.source(KafkaSource("payments", key=String(), value=Json()), timestamp=lambda payment: payment["at_ms"])
    .process(FirstOfId(), name="first-of-id")
    .sink(KafkaSink("payments-once", key=String(), value=Json()))
)

HOUR = 3_600_000

calls = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.tuples(st.integers(0, 3), st.integers(1, 60).map(HOUR.__mul__))),
        st.tuples(st.just("crash"), st.sampled_from(AFTER)),
        st.just(("checkpoint", None)),
    ),
    max_size=20,
)


def played(calls: list[tuple[str, Any]], crashing: bool, parallelism: int) -> list[Any]:
    """What comes out of these calls, with their crashes or without them, and the states at the end."""
    with MemoryRun(job, partitions=3, parallelism=parallelism) as run:
        for call, what in calls:
            match call:
                case "send":
                    run.send("payments", {"at_ms": what[1]}, f"k{what[0]}")
                case "checkpoint":
                    run.checkpoint()
                case "crash" if crashing:
                    run.crash(after=what)
        run.checkpoint()
        out = [(record.partition, record.key, record.value) for record in run.read("payments-once")]
        states = [[run.state(f"first-of-id/{name}", f"k{key}") for key in range(4)] for name in ("seen", "count")]
        return [*sorted(out, key=repr), states]


@pytest.mark.parametrize("parallelism", [1, 2])
@given(calls=calls)
@settings(deadline=None, max_examples=40)
def test_crashes_at_any_call_change_neither_states_nor_timers_nor_output(
    calls: list[tuple[str, Any]], parallelism: int
) -> None:
    assert played(calls, True, parallelism) == played(calls, False, parallelism)


def test_a_payment_passes_once_until_it_is_forgotten_and_its_timer_fires_once() -> None:
    with MemoryRun(job) as run:
        for hour in (1, 2, 2, 24, 25):
            run.send("payments", {"at_ms": hour * HOUR}, "a")
            run.crash()
            run.checkpoint()
        assert [record.value for record in run.read("payments-once")] == [
            {"at_ms": HOUR},
            {"at_ms": 2 * HOUR, "payments": 1},
            {"at_ms": 25 * HOUR},
        ]
        assert run.state("first-of-id/count", "a") == 5
        assert run.state("first-of-id/$stream-time", b"") == 25 * HOUR


def test_a_job_that_ends_leaves_its_timers_open() -> None:
    with MemoryRun(job) as run:
        run.send("payments", {"at_ms": HOUR}, "a")
        run.checkpoint()
        assert len(run.read("payments-once")) == 1


def test_an_operator_of_several_states_is_asked_for_one_by_name() -> None:
    with MemoryRun(job) as run, pytest.raises(ConfigurationError, match="name first-of-id/seen, first-of-id/count"):
        run.state("first-of-id", "a")


def test_a_record_without_an_extracted_time_or_without_a_value_has_its_own() -> None:
    job = Job("j")
    job.source(KafkaSource("in", value=Json()), timestamp=lambda value: value.get("at")).sink(
        KafkaSink("out", value=Json())
    )
    with MemoryRun(job) as run:
        for value in ({"at": 7}, {}, None):
            run.send("in", value, timestamp=5)
        run.checkpoint()
        assert [record.timestamp for record in run.read("out")] == [7, 5, 5]


def test_a_function_for_timestamps_that_fails_names_the_record() -> None:
    with MemoryRun(job) as run:
        run.send("payments", {}, "a")
        with pytest.raises(UserCodeError, match=r"payments\[0\]@0: assign_timestamps\(.*KeyError"):
            run.checkpoint()


def test_a_processor_behind_a_change_of_the_key_is_refused() -> None:
    stream = Job("j").source(KafkaSource("in"))
    with pytest.raises(ConfigurationError, match=r"process\(FirstOfId, name='x'\) keeps a state for each key"):
        stream.map_records(lambda record: record).process(FirstOfId(), name="x")
    with pytest.raises(ConfigurationError, match=r"Put process before it"):
        stream.process(FirstOfId(), name="x").process(FirstOfId(), name="y")


class Routing(Processor):
    """Late records go beside the others, and twice there; what is not declared is an error."""

    outputs = ("late",)

    def process(self, record: Record, context: Context) -> Record | None:
        if context.timestamp == context.stream_time:
            return record
        context.output("late", record)
        context.output("late", record.replace(value={"behind": (context.stream_time or 0) - record.value["at_ms"]}))
        return None


routing = Job("routing")
routed = routing.source(KafkaSource("in", value=Json()), timestamp=lambda value: value["at_ms"]).process(
    Routing(), name="routing"
)
routed.side_output("late").map(lambda value: {**value, "late": True}).sink(KafkaSink("late", value=Json()))
routed.sink(KafkaSink("out", value=Json()))
routed.merge(routed.side_output("late")).sink(KafkaSink("all", value=Json()))


@pytest.mark.parametrize("after", AFTER)
def test_what_is_put_out_beside_goes_to_those_that_take_it_also_through_a_crash(after: Moment) -> None:
    with MemoryRun(routing) as run:
        for stamp in (5, 3, 6):
            run.send("in", {"at_ms": stamp}, b"a")
            run.crash(after=after)
        run.checkpoint()
        assert [record.value for record in run.read("out")] == [{"at_ms": 5}, {"at_ms": 6}]
        late = [record.value for record in run.read("late")]
        assert late == [{"at_ms": 3, "late": True}, {"behind": 2, "late": True}]
        values = [record.value for record in run.read("all")]
        assert sorted(values, key=repr) == [{"at_ms": 3}, {"at_ms": 5}, {"at_ms": 6}, {"behind": 2}]


def test_a_replay_follows_side_outputs() -> None:
    replay = Replay(Paths.of(routing.definition()))
    every = [InputRow({"at_ms": stamp}, b"a", offset_=offset) for offset, stamp in enumerate((5, 3, 6))]
    made = [(each.sink, each.expected.source.offset) for each in replay.make(Turn.of("source-1", batch_of(every)))]
    assert sorted(made) == [
        ("sink-1", 1),
        ("sink-1", 1),
        ("sink-2", 0),
        ("sink-2", 2),
        ("sink-3", 0),
        ("sink-3", 1),
        ("sink-3", 1),
        ("sink-3", 2),
    ]


def test_a_job_shows_which_output_an_operator_takes() -> None:
    definition = routing.definition()
    assert "  <- routing.late\n" in definition.describe()
    assert "  <- routing, routing.late\n" in definition.describe()
    assert "-->|late| n" in definition.mermaid()


def test_only_a_processor_has_side_outputs_and_no_id_has_a_dot() -> None:
    stream = Job("j").source(KafkaSource("in"))
    with pytest.raises(ConfigurationError, match="only what process makes has side outputs"):
        stream.side_output("late")
    with pytest.raises(ConfigurationError, match=r"has no side output 'a\.b': its class declares outputs = \(\)"):
        stream.process(FirstOfId(), name="x").side_output("a.b")
    with pytest.raises(ConfigurationError, match=r"the name of a map, 'a\.b', has a dot"):
        stream.map(str, name="a.b")


class Keys(Processor):
    """The key of each call."""

    def process(self, record: Record, context: Context) -> Record:
        context.set_timer(5)
        return Record(context.key, "process")

    def on_timer(self, at: int, context: Context) -> Record:
        return Record(context.key, "timer")


@pytest.mark.parametrize(
    ("serde", "key"),
    [
        (Avro({"type": "int", "logicalType": "date"}), date(2020, 1, 1)),
        (Avro({"type": "string", "logicalType": "uuid"}), UUID(int=7)),
        (Avro({"type": "long", "logicalType": "timestamp-millis"}), datetime(2020, 1, 1, tzinfo=UTC)),
        (Json(), {"b": 1, "a": [2.0, True]}),
        (Json(), "text"),
        (Bytes(), b"\xff"),
    ],
)
def test_what_timers_and_windows_make_has_the_key_of_the_records_and_its_partition(serde: Serde, key: Any) -> None:
    job = Job("keys")
    read = job.source(KafkaSource("in", key=serde, value=Json()))
    read.process(Keys(), name="keys").sink(KafkaSink("out", key=serde, value=Json()))
    counted = read.window(Tumbling("5ms")).count(name="windows").final().map(lambda window: "window")
    counted.sink(KafkaSink("windows", key=serde, value=Json()))
    with MemoryRun(job, partitions=16) as run:
        run.send("in", 1, key, timestamp=1)
        run.checkpoint()
        run.advance(9)
        run.checkpoint()
        made = [*run.read("out"), *run.read("windows")]
    assert [record.value for record in made] == ["process", "timer", "window"]
    assert {repr(record.key) for record in made} == {repr(key)}
    assert len({record.partition for record in made}) == 1


def test_a_key_has_one_timer_of_a_time_though_one_source_reads_text_and_another_bytes() -> None:
    job = Job("kinds")
    text = job.source(KafkaSource("text", key=String(), value=Json()))
    both = text.merge(job.source(KafkaSource("bytes", key=Bytes(), value=Json())))
    without_keys = both.process(Keys(), name="keys").map_records(lambda record: record.replace(key=None))
    without_keys.sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        run.send("text", 1, "a", timestamp=1)
        run.send("bytes", 1, b"a", timestamp=2)
        run.advance(9)
        run.checkpoint()
        assert [record.value for record in run.read("out")] == ["process", "process", "timer"]


class Maps(Processor):
    """A map and a list of each kind of key."""

    of_any = MapState(Json(), key=Json(), ttl="1h")
    of_text = MapState(Json())
    items = ListState(Json())

    def process(self, record: Record, context: Context) -> None:
        for key in record.value:
            self.of_any.put(key, "v")
            self.of_text.put(str(key), "v")
            self.items.add(key)


def test_the_state_of_a_list_and_a_map_has_all_entries_whatever_their_keys() -> None:
    job = Job("maps")
    job.source(KafkaSource("in", key=Json(), value=Json())).process(Maps(), name="maps").sink(KafkaSink("out"))
    with MemoryRun(job) as run:
        for key in (1, True, 1.0):
            run.send("in", [[1], 1, True, 1.0], key)
        run.checkpoint()
        for key in (1, True, 1.0):
            assert repr(run.state("maps/of_any", key)) == "[(1, 'v'), (1.0, 'v'), ([1], 'v'), (True, 'v')]"
            assert run.state("maps/of_text", key) == {"1": "v", "1.0": "v", "True": "v", "[1]": "v"}
            assert repr(run.state("maps/items", key)) == "[[1], 1, True, 1.0]"
        assert run.state("maps/of_any", "none") is None
        run.crash()
        run.send("in", [2], 1)
        run.checkpoint()
        assert repr(run.state("maps/items", 1)) == "[[1], 1, True, 1.0, 2]"
        assert len(run.state("maps/of_any", 1)) == 5


class Lost(Routing):
    """Puts a record out at an output that nobody has declared."""

    def process(self, record: Record, context: Context) -> Record | None:
        context.output("latee", record)
        return None


def test_an_output_that_is_not_declared_is_the_records_error() -> None:
    job = Job("j")
    lost = job.source(KafkaSource("in", value=Json())).process(Lost(), name="lost")
    lost.merge(lost.side_output("late")).sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        run.send("in", 1, b"a")
        with pytest.raises(UserCodeError, match=r"in\[0\]@0.*no side output 'latee'.*\('late',\)"):
            run.checkpoint()


def test_a_side_output_that_no_stream_takes_is_refused() -> None:
    job = Job("j")
    job.source(KafkaSource("in", value=Json())).process(Routing(), name="r").sink(KafkaSink("out", value=Json()))
    with pytest.raises(ConfigurationError, match="no stream takes the side output 'late' of r"):
        job.definition()


@pytest.mark.parametrize("wrong", ["late", ["late"], ("a.b",), (1,)])
def test_outputs_that_are_no_names_are_refused(wrong: Any) -> None:
    odd: Any = type("Odd", (Routing,), {"outputs": wrong})
    with pytest.raises(ConfigurationError, match=r"outputs of process.* is a tuple of names"):
        Job("j").source(KafkaSource("in")).process(odd(), name="odd")
