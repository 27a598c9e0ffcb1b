"""What a job makes of its input, offline: the same as in a subtask, with the place of the input that it is made of."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from twopc import Job, Json, KafkaSink, KafkaSource, Record, Tumbling
from twopc.errors import UserCodeError
from twopc.kafka.topic_partition import TopicPartition
from twopc.stream import Stream
from twopc.testing.rows import InputRow, batch_of
from twopc.verify.history import Expected, Place
from twopc.verify.paths import Paths
from twopc.verify.replay import Replay

IN = TopicPartition("in", 0)


def stream() -> Stream:
    return Job("job").source(KafkaSource("in"))


def replay_of(job: Job) -> Replay:
    return Replay(Paths.of(job.definition()))


def made(job: Job, rows: Iterable[InputRow]) -> list[tuple[str, Expected]]:
    return [(each.topic, each.expected) for each in replay_of(job).make("source-1", batch_of(rows))]


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
        for each in replay.make("source-1", batch_of(InputRow(b"v", key, partition) for partition, key in batch))
    ]
    assert found == [b"v:1", b"v:1", b"v:2", b"v:1", b"v:2"]


def test_how_the_input_is_cut_into_batches_changes_nothing() -> None:
    rows = [InputRow(b"%d" % n, b"k%d" % (n % 3), offset_=n) for n in range(30)]
    whole = made(counting(), rows)
    replay = replay_of(counting())
    cut = [each for n in range(0, 30, 7) for each in replay.make("source-1", batch_of(rows[n : n + 7]))]
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
    with pytest.raises(UserCodeError, match=r"in\[0\]@7.*encoding a value"):
        made(job, [InputRow(b"8", b"k", offset_=7)])


def test_a_drain_closes_what_is_open_with_the_place_behind_the_last_record() -> None:
    job = Job("job")
    clicks = job.source(KafkaSource("in", value=Json()), timestamp=lambda click: click["at"])
    counted = clicks.window(Tumbling("10ms")).count(name="n").final().map(lambda window: window.value)
    counted.sink(KafkaSink("out", value=Json()))
    replay = Replay(Paths.of(job.definition()), numbers=[0, 1])
    rows = [InputRow({"at": at}, b"k", number) for number, at in [(0, 1), (1, 2), (0, 12), (1, 3), (0, 14)]]
    assert [each.expected for each in replay.make("source-1", batch_of(rows))] == [Expected(Place(IN, 0), b"k", b"1")]
    behind = {number: Place(TopicPartition("in", number), 9) for number in (0, 1)}
    drained = [each.expected for each in replay.drain("source-1", behind)]
    assert drained == [Expected(behind[0], b"k", b"2"), Expected(behind[1], b"k", b"2")]
