"""What a job makes of its input, offline: the same as in a subtask, with the place of the input that it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from twopc import DeadLetter, Job, Json, KafkaSink, KafkaSource, Record, Skip, Tumbling
from twopc.errors import UserCodeError
from twopc.kafka.output.topic_output import CHOOSING
from twopc.kafka.place import Place
from twopc.kafka.topic_partition import TopicPartition
from twopc.kafka.topics.topic_limits import TopicLimits
from twopc.operators.turn import Turn
from twopc.protocol.record_errors import RecordErrorCount
from twopc.record import Batch, ErrorStage, RecordError
from twopc.stream import Stream
from twopc.testing.rows import InputRow, batch_of
from twopc.verify.found_topics import FoundTopics
from twopc.verify.history import Expected
from twopc.verify.paths import Paths
from twopc.verify.replay import Replay

IN = TopicPartition("in", 0)


OUT = KafkaSink("out", value=Json())
PRODUCING = "producing to topic out with KafkaSink(key=Bytes(), value=Bytes())"
WRITING = "writing to topic out"


def odd(number: int) -> int:
    if number % 2:
        raise ValueError(number)
    return number


def nameless(record: Record) -> str:
    return "" if record.value % 2 else "out"


def unwritten(number: int) -> object:
    return number if number % 2 else b"%d" % number


def stream() -> Stream:
    return Job("job").source(KafkaSource("in"))


def replay_of(job: Job) -> Replay:
    return Replay(Paths.of(job.definition()))


def made(job: Job, rows: Iterable[InputRow]) -> list[tuple[str, Expected]]:
    return [(each.topic, each.expected) for each in replay_of(job).make(Turn.of("source-1", batch_of(rows)))]


def counting() -> Job:
    def count(total: int | None, value: bytes) -> tuple[int, bytes]:
        total = (total or 0) + 1
        return total, b"%s:%d" % (value, total)

    return stream().stateful_map(count, name="count").sink(KafkaSink("out"))


def test_each_record_says_which_input_it_is_made_of() -> None:
    job = stream().filter(lambda value: value != b"x").map(bytes.upper).sink(KafkaSink("out"))
    rows = [InputRow(b"a", b"k", offset_=5), InputRow(b"x", b"k", offset_=6), InputRow(b"b", b"l", offset_=9)]
    assert made(job, rows) == [
        ("out", Expected(Place(IN, 5), b"k", b"A")),
        ("out", Expected(Place(IN, 9), b"l", b"B")),
    ]


def test_state_is_kept_by_key_and_input_partition_over_batches() -> None:
    replay = replay_of(counting())
    found = [
        each.expected.value
        for batch in ([(0, b"k"), (1, b"k"), (0, b"k")], [(0, b"l"), (1, b"k")])
        for each in replay.make(
            Turn.of("source-1", batch_of(InputRow(b"v", key, partition) for partition, key in batch))
        )
    ]
    assert found == [b"v:1", b"v:1", b"v:2", b"v:1", b"v:2"]


def test_how_the_input_is_cut_into_batches_changes_nothing() -> None:
    rows = [InputRow(b"%d" % n, b"k%d" % (n % 3), offset_=n) for n in range(30)]
    whole = made(counting(), rows)
    replay = replay_of(counting())
    cut = [each for n in range(0, 30, 7) for each in replay.make(Turn.of("source-1", batch_of(rows[n : n + 7])))]
    assert [(each.topic, each.expected) for each in cut] == whole


def test_values_are_encoded_as_the_sink_does_and_headers_are_kept() -> None:
    job = stream().map(lambda value: {"v": value.decode()}).sink(KafkaSink("out", value=Json()))
    [(_, expected)] = made(job, [InputRow(b"a", b"k", headers_=[("h", b"1")])])
    assert (expected.value, expected.headers) == (b'{"v":"a"}', (("h", b"1"),))


def test_text_that_passes_for_bytes_is_expected_as_the_client_writes_it() -> None:
    job = stream().map_records(lambda record: record.replace(key="ü", value="text")).sink(KafkaSink("out"))
    [(_, expected)] = made(job, [InputRow(b"a", b"k")])
    assert (expected.key, expected.value) == ("ü".encode(), b"text")


def test_a_topic_function_is_asked_for_every_record() -> None:
    def topic_of(record: Record) -> str:
        return f"to-{record.key.decode()}-{record.offset}"

    job = stream().sink(KafkaSink(topic_of))
    assert [topic for topic, _ in made(job, [InputRow(b"a", b"k", offset_=3), InputRow(b"b", b"l")])] == [
        "to-k-3",
        "to-l-0",
    ]


def test_a_function_that_fails_names_the_record() -> None:
    job = stream().map(int).sink(KafkaSink("out"))
    with pytest.raises(UserCodeError, match=r"in\[0\]@7"):
        made(job, [InputRow(b"no number", b"k", offset_=7)])


def test_a_value_that_the_sink_can_not_encode_names_the_record() -> None:
    job = stream().map(int).sink(KafkaSink("out"))
    with pytest.raises(UserCodeError, match=r"in\[0\]@7.*the value must be bytes"):
        made(job, [InputRow(b"8", b"k", offset_=7)])


WRONG: dict[str, tuple[Callable[[Stream], object], str]] = {
    "no number": (lambda numbers: numbers.map(lambda each: each + 0).sink(OUT), "decoding the value"),
    "a function raises": (lambda numbers: numbers.map(odd).sink(OUT), "map(odd)"),
    "its topic has no name": (lambda numbers: numbers.sink(KafkaSink(nameless, value=Json())), CHOOSING),
    "the client refuses it": (lambda numbers: numbers.map(unwritten).sink(KafkaSink("out")), PRODUCING),
    "its partition isn't there": (
        lambda numbers: numbers.sink(KafkaSink("out", value=Json(), partitioner="source")),
        "the sink's partitioner",
    ),
    "its topic refuses it": (lambda numbers: numbers.map(lambda each: "x" * (each % 2 * 500)).sink(OUT), WRITING),
    "its time can't be written": (
        lambda numbers: numbers.map_records(lambda each: each.replace(timestamp=0 if each.value % 2 else 1)).sink(OUT),
        "writing a timestamp to topic out",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_goes_wrong_makes_nothing_and_is_counted_by_source_and_operator(wrong: str) -> None:
    job, (build, operator) = Job("job", on_error=Skip()), WRONG[wrong]
    build(job.source(KafkaSource("in", value=Json())))
    limits = {"out": TopicLimits(largest=400)}
    with Replay(Paths.of(job.definition()), topics=FoundTopics({"out": 2}, limits)) as replay:
        rows = [InputRow(1, b"k", 2, offset_=1), InputRow(2, b"k", offset_=2), InputRow(4, b"k", offset_=4)]
        batch = batch_of(rows)
        if wrong == "no number":
            bad = RecordError(rows[0], ErrorStage.VALUE_CONVERTER, operator, ValueError())
            batch = Batch(rows[1:], [2, 4], errors=[(0, bad)])
        assert [each.expected.source.offset for each in replay.make(Turn.of("source-1", batch))] == [2, 4]
        assert replay.record_errors == (RecordErrorCount("source-1", operator, skipped=1),)


def test_a_dead_letter_is_counted_and_not_expected() -> None:
    job = Job("job", on_error=DeadLetter("dead"))
    job.source(KafkaSource("in", value=Json())).map(odd).sink(OUT)
    with Replay(Paths.of(job.definition())) as replay:
        assert list(replay.make(Turn.of("source-1", batch_of([InputRow(1, b"k")])))) == []
        assert replay.record_errors == (RecordErrorCount("source-1", "map(odd)", dead_letters=1),)


def test_a_drain_closes_what_is_open_with_the_place_behind_the_last_record() -> None:
    job = Job("job")
    clicks = job.source(KafkaSource("in", value=Json()), timestamp=lambda click: click["at"])
    counted = clicks.window(Tumbling("10ms")).count(name="n").final().map(lambda window: window.value)
    counted.sink(KafkaSink("out", value=Json()))
    replay = Replay(Paths.of(job.definition()), numbers=[0, 1])
    rows = [InputRow({"at": at}, b"k", number) for number, at in [(0, 1), (1, 2), (0, 12), (1, 3), (0, 14)]]
    assert [each.expected for each in replay.make(Turn.of("source-1", batch_of(rows)))] == [
        Expected(Place(IN, 0), b"k", b"1")
    ]
    behind = {number: Place(TopicPartition("in", number), 9) for number in (0, 1)}
    drained = [each.expected for each in replay.drain(["source-1"], behind)]
    assert drained == [Expected(behind[0], b"k", b"2"), Expected(behind[1], b"k", b"2")]
