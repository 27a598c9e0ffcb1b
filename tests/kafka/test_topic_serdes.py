"""A serde that knows what it works for: the topic, key or value, and the headers; and that is opened and closed."""

from __future__ import annotations

from typing import Any

from twopc import Job, Json, KafkaSink, KafkaSource, Serde
from twopc.connect import HeaderSerde, SerdeContext
from twopc.kafka.input.decoding import decoded
from twopc.kafka.topic_serdes import OfTopic, TopicSerdes
from twopc.operators.turn import Turn
from twopc.record import Headers
from twopc.testing import MemoryRun
from twopc.testing.rows import InputRow, batch_of, keys_in, values_in
from twopc.verify.paths import Paths
from twopc.verify.replay import Replay


class Naming(Serde):
    """Says beside each text what it was opened for; `life` hears of it."""

    def __init__(self, life: list[str], context: SerdeContext | None = None) -> None:
        self.life = life
        self.context = context

    def open(self, context: SerdeContext) -> Serde:
        self.life.append(f"open {context}{' to write' if context.writing else ''}")
        return Naming(self.life, context)

    def close(self) -> None:
        self.life.append(f"close {self.context}")

    def deserialize(self, data: bytes | None) -> Any:
        assert self.context is not None
        return None if data is None else f"{data.decode()} of {self.context.topic}"

    def serialize(self, value: Any) -> bytes | None:
        assert self.context is not None
        return None if value is None else f"{value} for {self.context.topic}".encode()


class Scaled(HeaderSerde):
    """A number, whose unit is in a header."""

    def deserialize_with(self, data: bytes | None, headers: Headers | None) -> Any:
        return None if data is None else (int(data), dict(headers or ())["unit"])

    def serialize_with(self, value: Any, headers: Headers | None) -> tuple[bytes | None, Headers | None]:
        number, unit = value
        return b"%d" % number, [*(headers or ()), ("unit", unit)]


def test_each_topic_has_a_serde_of_its_own_and_each_is_closed_once() -> None:
    life: list[str] = []
    with TopicSerdes(Json(), Naming(life), ["a", "b"]) as serdes:
        rows = [InputRow(b"1", topic_="a"), InputRow(b"2", topic_="b"), InputRow(b"3", topic_="b")]
        batch = decoded(rows, serdes, keys_in, values_in)
        assert batch.values == ["1 of a", "2 of b", "3 of b"]
        assert serdes.of("a") is serdes.of("a")
    assert life == [
        "open the values of topic 'a'",
        "open the values of topic 'b'",
        "close the values of topic 'b'",
        "close the values of topic 'a'",
    ]


def test_a_serde_that_works_for_every_topic_alike_gets_a_batch_of_several_topics_as_one_column() -> None:
    columns: list[list[bytes | None]] = []

    class Watched(Json):
        def deserialize_all(self, column: list[bytes | None]) -> list[Any]:
            columns.append(column)
            return super().deserialize_all(column)

    rows = [InputRow(b"1", b"7", topic_="a"), InputRow(b"2", topic_="b")]
    batch = decoded(rows, TopicSerdes(Json(), Watched(), ["a", "b"]), keys_in, values_in)
    assert (batch.keys, batch.values, columns) == ([7, None], [1, 2], [[b"1", b"2"]])


def test_a_serde_for_another_topic_than_its_records_come_from_is_opened_for_that_and_goes_by_columns() -> None:
    class Counting(Naming):
        def open(self, context: SerdeContext) -> Serde:
            return Counting(self.life, context)

        def deserialize_all(self, column: list[bytes | None]) -> list[Any]:
            self.life.append(f"read {column}")
            return super().deserialize_all(column)

        def serialize_all(self, column: list[Any]) -> list[bytes | None]:
            self.life.append(f"write {column}")
            return super().serialize_all(column)

    life: list[str] = []
    with TopicSerdes(Json(), OfTopic(Counting(life), "orders"), ["scratch"]) as serdes:
        value = serdes.of("scratch").value
        assert value.deserialize_all([b"1", b"2"]) == ["1 of orders", "2 of orders"]
        assert value.serialize_all([1, 2]) == [b"1 for orders", b"2 for orders"]
    assert life == ["read [b'1', b'2']", "write [1, 2]", "close the values of topic 'orders'"]


def test_a_record_that_can_not_be_decoded_is_an_error_of_the_batch_behind_those_of_another_topic() -> None:
    class Number(Serde):
        def open(self, context: SerdeContext) -> Serde:
            return Number()

        def deserialize(self, data: bytes | None) -> Any:
            return int(data or b"")

        def serialize(self, value: Any) -> bytes | None:
            raise AssertionError

    rows = [InputRow(b"1", topic_="a"), InputRow(b"2", topic_="b", offset_=5), InputRow(b"x", topic_="b", offset_=6)]
    batch = decoded(rows, TopicSerdes(Json(), Number(), ["a", "b"]), keys_in, values_in)
    ((before, error),) = batch.errors
    assert (batch.values, before) == ([1, 2], 2)
    assert str(error.named()).startswith("record b[0]@6: decoding the value failed: ValueError")


def test_a_run_opens_serdes_for_what_they_work_for_and_closes_all_of_them() -> None:
    life: list[str] = []
    job = Job("named")
    job.source(KafkaSource("in", key=Naming(life), value=Naming(life))).sink(
        KafkaSink(lambda record: f"out-{record.key[0]}", key=Naming(life), value=Naming(life))
    )
    with MemoryRun(job) as run:
        run.send_raw("in", b"v", b"a")
        run.send_raw("in", b"w", b"b")
        run.checkpoint()
        (left,), (right,) = run.read("out-a"), run.read("out-b")
        assert left.value == "v of in for out-a of out-a"
        assert right.key == "b of in for out-b of out-b"
    assert "open the keys of topic 'in'" in life
    assert "open the values of topic 'out-b' to write" in life
    opened = sorted(each.removesuffix(" to write").removeprefix("open ") for each in life if each.startswith("open"))
    assert sorted(each.removeprefix("close ") for each in life if each.startswith("close")) == opened


def test_a_serde_reads_and_writes_headers() -> None:
    job = Job("scaled")
    stream = job.source(KafkaSource("in", value=Scaled()))
    stream.map(lambda value: (value[0] * 2, value[1] + b"!")).sink(KafkaSink("out", value=Scaled()))
    with MemoryRun(job) as run:
        run.send("in", (21, b"m"), headers={"trace": b"1"})
        run.checkpoint()
        (record,) = run.read("out")
    assert record.value == (42, b"m!")
    assert list(record.headers or ()) == [("trace", b"1"), ("unit", b"m"), ("unit", b"m!")]


def test_a_replay_encodes_as_the_sink_does() -> None:
    life: list[str] = []
    job = Job("replayed")
    source = job.source(KafkaSource("in"), name="source")
    source.map(lambda data: (int(data), b"m")).sink(
        KafkaSink(lambda record: f"out-{record.value[0] % 2}", key=Naming(life), value=Scaled())
    )
    rows = [InputRow(b"%d" % number, b"k", offset_=number) for number in (1, 2, 4)]
    with Replay(Paths.of(job.definition())) as replay:
        (source_id,) = job.definition().sources
        made = list(replay.make(Turn.of(source_id, batch_of(rows))))
    assert [(each.topic, each.expected.value, each.expected.headers) for each in made] == [
        ("out-1", b"1", (("unit", b"m"),)),
        ("out-0", b"2", (("unit", b"m"),)),
        ("out-0", b"4", (("unit", b"m"),)),
    ]
    assert [each.expected.key for each in made] == [f"{b'k'!r} for out-{number}".encode() for number in (1, 0, 0)]
    assert sum(each.startswith("close") for each in life) == 2
