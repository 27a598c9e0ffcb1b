"""Jobs with key_by in memory: all records of one key come together, once, through every crash."""

from __future__ import annotations

from typing import Any

import pytest

from twopc import (
    Avro,
    Context,
    DeadLetter,
    Job,
    Json,
    KafkaSink,
    KafkaSource,
    Processor,
    Record,
    String,
    Tumbling,
    ValueState,
)
from twopc.errors import ConfigurationError, UserCodeError
from twopc.testing import MemoryRun
from twopc.testing.memory.run import Moment
from twopc.testing.rows import InputRow, batch_of

VISIT = {"type": "record", "name": "Visit", "fields": [{"name": "user", "type": "string"}]}


def counted(total: Any, value: Any) -> tuple[int, Any]:
    return (total or 0) + 1, [value, (total or 0) + 1]


def by_id(function: Any = lambda value: value["id"], **options: Any) -> Job:
    """The records of each id, each with how many there were."""
    job = Job("counts")
    keyed = job.source(KafkaSource("in", value=Json())).key_by(function, name="by-id", **options)
    keyed.stateful_map(counted, name="count").sink(KafkaSink("out", key=Json(), value=Json()))
    return job


def outputs(run: MemoryRun, topic: str = "out") -> list[Any]:
    return [record.value for record in run.read(topic)]


def test_records_of_one_key_have_one_state_wherever_they_came_from() -> None:
    with MemoryRun(by_id(), partitions=4, parallelism=2) as run:
        for partition in range(4):
            run.send("in", {"id": "a"}, partition=partition)
        run.checkpoint()
        assert outputs(run) == [[{"id": "a"}, n] for n in (1, 2, 3, 4)]
        assert run.state("count", "a") == 4


def test_the_topic_has_the_name_of_job_and_operator() -> None:
    with MemoryRun(by_id()) as run:
        run.send("in", {"id": "a"})
        run.checkpoint()
        [record] = run.read("counts-by-id-repartition")
        assert (record.key, record.value) == ("a", {"id": "a"})


@pytest.mark.parametrize("moment", ["processing", "pre-commit", "completion"])
def test_a_crash_loses_and_doubles_nothing_on_the_way(moment: Moment) -> None:
    with MemoryRun(by_id(), partitions=3, parallelism=2) as run:
        for _ in range(3):
            for n in range(6):
                run.send("in", {"id": n % 2})
            run.crash(moment)
        run.checkpoint()
        seen = outputs(run)
        assert sorted(n for value, n in seen if value["id"] == 0) == list(range(1, 10))
        assert sorted(n for value, n in seen if value["id"] == 1) == list(range(1, 10))


@pytest.mark.parametrize("key", ["text", b"bytes", b"\xff\xfe", "ü", 7, 1.5, True, [1, "x"], {"b": 1, "a": None}, ""])
def test_a_key_comes_back_as_it_was(key: Any) -> None:
    job, seen = Job("keys"), list[Any]()
    again = job.source(KafkaSource("in")).key_by(lambda _: key, name="again")
    again = again.peek_records(lambda record: seen.append(record.key))
    again.map_records(lambda record: record.replace(key=None)).sink(KafkaSink("out"))
    with MemoryRun(job, partitions=4) as run:
        run.send_raw("in", b"value")
        run.checkpoint()
    assert seen == [key]
    assert type(seen[0]) is type(key)


@pytest.mark.parametrize("key", ["ab", b"ab"])
def test_a_key_is_in_the_partition_that_it_would_have_elsewhere(key: Any) -> None:
    job = Job("keys")
    stream = job.source(KafkaSource("in")).key_by(lambda _: key, name="again")
    stream.map_records(lambda record: record.replace(key=None)).sink(KafkaSink("out"))
    with MemoryRun(job, partitions=7) as run:
        run.send_raw("in", b"value", b"ab")
        run.checkpoint()
        [record] = run.read("keys-again-repartition")
        job_of_same = Job("same")
        job_of_same.source(KafkaSource("in")).sink(KafkaSink("copy"))
        with MemoryRun(job_of_same, partitions=7) as other:
            other.send_raw("in", b"value", b"ab")
            other.checkpoint()
            [copied] = other.read("copy")
        assert record.partition == copied.partition


def test_timestamp_and_headers_are_kept() -> None:
    job = Job("kept")
    source = job.source(KafkaSource("in", value=Json()), timestamp=lambda value: value["at"])
    source.key_by(lambda value: value["id"], name="by-id").sink(KafkaSink("out", key=String(), value=Json()))
    with MemoryRun(job) as run:
        run.send("in", {"id": "a", "at": 1234}, headers={"trace": b"7"})
        run.checkpoint()
        [record] = run.read("out")
        assert (record.timestamp, list(record.headers or ())) == (1234, [("trace", b"7")])


def test_values_travel_in_the_format_of_their_source_until_they_change() -> None:
    def travels(job: Job) -> dict[str, str]:
        ends = job.definition().ends
        return {each: str(ends[each].describe()["value"]) for each in ("k-sink", "k-source")}

    unchanged = Job("unchanged")
    source = unchanged.source(KafkaSource("in", value=Avro(VISIT))).filter(bool).peek(print)
    source.key_by(lambda visit: visit["user"], name="k").sink(KafkaSink("out", key=String(), value=Json()))
    assert travels(unchanged) == {"k-sink": "Avro(Visit)", "k-source": "Avro(Visit)"}

    changed = Job("changed")
    source = changed.source(KafkaSource("in", value=Avro(VISIT))).map(lambda visit: visit["user"])
    source.key_by(lambda user: user, name="k").sink(KafkaSink("out", key=String(), value=String()))
    assert travels(changed) == {"k-sink": "Json()", "k-source": "Json()"}

    several = Job("several")
    web, app = several.source(KafkaSource("web", value=Json())), several.source(KafkaSource("app", value=Avro(VISIT)))
    web.merge(app).key_by(lambda visit: visit["user"], name="k").sink(KafkaSink("out", key=String(), value=Json()))
    assert travels(several) == {"k-sink": "Json()", "k-source": "Json()"}


def test_sources_of_several_formats_are_counted_by_one_key() -> None:
    job = Job("fan-in")
    web = job.source(KafkaSource("web", value=Json()), name="web")
    app = job.source(KafkaSource("app", value=Avro(VISIT)), name="app")
    keyed = web.merge(app).key_by(lambda visit: visit["user"], name="by-user")
    keyed.stateful_map(lambda n, _: ((n or 0) + 1,) * 2, name="visits").sink(KafkaSink("out", value=Json(), key=Json()))
    with MemoryRun(job, partitions=4) as run:
        run.send("web", {"user": "ada"})
        run.send("app", {"user": "ada"})
        run.checkpoint()
        assert outputs(run) == [1, 2]


def test_a_stream_may_get_new_keys_more_than_once() -> None:
    job = Job("twice")
    first = job.source(KafkaSource("in", value=Json())).key_by(lambda value: value["id"], name="by-id")
    counts = first.stateful_map(counted, name="count").filter(lambda pair: pair[1] == 2)
    again = counts.key_by(lambda pair: pair[0]["city"], name="by-city")
    again.stateful_map(lambda n, _: ((n or 0) + 1,) * 2, name="regulars").sink(
        KafkaSink("out", key=Json(), value=Json())
    )
    definition = job.definition()
    assert definition.stages == {"source-1": 0, "by-id-source": 1, "by-city-source": 2}
    with MemoryRun(job, partitions=4, parallelism=2) as run:
        [last] = {subtask._parts.inputs.last_stage for subtask in run._process._running.subtasks}  # type: ignore[union-attr]
        assert last == 2, "subtasks end one stage after the other"
        for name in ("ada", "bob", "ada", "bob"):
            run.send("in", {"id": name, "city": "Ulm"})
        run.checkpoint()
        assert outputs(run) == [1, 2]


def test_the_topic_has_as_many_partitions_as_it_was_told() -> None:
    with MemoryRun(by_id(partitions=1), partitions=8) as run:
        for n in range(8):
            run.send("in", {"id": n})
        run.checkpoint()
        assert {record.partition for record in run.read("counts-by-id-repartition")} == {0}


class Once(Processor):
    seen = ValueState(Json(), ttl="24h")

    def process(self, record: Record, context: Context) -> Any:
        if self.seen.get() is None:
            self.seen.set(record.timestamp)
            yield record


def test_a_processor_keeps_its_state_by_the_new_key() -> None:
    job = Job("dedupe")
    keyed = job.source(KafkaSource("payments", value=Json())).key_by(lambda payment: payment["id"], name="by-id")
    keyed.process(Once(), name="once").sink(KafkaSink("payments-once", key=String(), value=Json()))
    with MemoryRun(job, partitions=3) as run:
        run.send("payments", {"id": "a"}, partition=0)
        run.checkpoint()
        run.send("payments", {"id": "a"}, partition=1)
        run.send("payments", {"id": "b"}, partition=2)
        run.crash()
        run.checkpoint()
        assert [value["id"] for value in outputs(run, "payments-once")] == ["a", "b"]


def test_a_record_without_a_key_ends_the_job_and_says_what_to_do() -> None:
    with MemoryRun(by_id(lambda value: value.get("id"))) as run:
        run.send("in", {})
        with pytest.raises(UserCodeError, match="leave records without one out, with filter before key_by"):
            run.checkpoint()


def test_what_goes_wrong_before_and_behind_it_follows_the_policy_of_its_source() -> None:
    job = Job("letters")
    source = job.source(KafkaSource("in", value=Json()), on_error=DeadLetter("dead"))
    keyed = source.key_by(lambda value: value["id"], name="by-id").map(lambda value: 1 / value["n"])
    keyed.sink(KafkaSink("out", key=String(), value=Json()))
    with MemoryRun(job, partitions=2) as run:
        run.send("in", {"n": 1})
        run.send("in", {"id": "a", "n": 0})
        run.send("in", {"id": "a", "n": 1})
        run.checkpoint()
        assert outputs(run) == [1.0]
        topics = [str(dict(record.headers or ())["__connect.errors.topic"]) for record in run.read("dead")]
        assert sorted(topics) == ["b'in'", "b'letters-by-id-repartition'"]


def test_a_value_that_has_no_form_in_json_is_named_with_its_way() -> None:
    job = Job("bytes")
    source = job.source(KafkaSource("in")).map(bytes.upper)
    source.key_by(lambda value: value[:1], name="first").sink(KafkaSink("out"))
    with MemoryRun(job) as run:
        run.send_raw("in", b"value")
        with pytest.raises(UserCodeError, match=r"encoding a value for topic bytes-first-repartition.*as value="):
            run.checkpoint()


def test_what_stands_for_no_time_in_a_topic_is_no_time() -> None:
    assert batch_of([InputRow(b"a", timestamp_=-1), InputRow(b"b", timestamp_=-2)]).timestamps == [None, -2]


@pytest.mark.parametrize("stamp", [0, -1])
def test_a_time_that_can_not_be_written_is_the_fault_of_its_record(stamp: int) -> None:
    job = Job("times")
    source = job.source(KafkaSource("in", value=Json()), on_error=DeadLetter("dead"))
    timed = source.map_records(lambda record: record.replace(timestamp=record.value["at"]))
    timed.key_by(lambda value: value["id"], name="k").sink(KafkaSink("out", key=String(), value=Json()))
    with MemoryRun(job) as run:
        for at in (5, stamp, 7):
            run.send("in", {"id": "a", "at": at})
        run.checkpoint()
        assert [record.timestamp for record in run.read("out")] == [5, 7]
        [dead] = run.read("dead")
        assert f"the timestamp {stamp}, " in str(dict(dead.headers or ())["__connect.errors.exception.message"])


def test_the_state_of_a_later_stage_is_restored_with_its_partitions() -> None:
    with MemoryRun(by_id(), partitions=4, parallelism=3) as run:
        for n in range(12):
            run.send("in", {"id": n % 4})
        run.checkpoint()
        run.crash()
        for n in range(4):
            run.send("in", {"id": n})
        run.checkpoint()
        assert sorted(n for _, n in outputs(run)) == sorted([1, 2, 3, 4] * 4)


def test_key_by_says_what_it_needs() -> None:
    source = Job("options").source(KafkaSource("in"))
    with pytest.raises(ConfigurationError, match="key_by needs a function"):
        source.key_by("id", name="by-id")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="partitions of key_by must be a whole number from 1 on, not 0"):
        source.key_by(len, name="by-id", partitions=0)
    with pytest.raises(ConfigurationError, match="value of key_by must be a serde"):
        source.key_by(len, name="by-id", value="json")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"name of a key_by, 'by\.id', has a dot"):
        source.key_by(len, name="by.id")


def test_the_partitioner_of_the_sinks_must_keep_keys_together() -> None:
    job = Job("scattered")
    keyed = job.source(KafkaSource("in")).key_by(len, name="by-length")
    keyed.sink(KafkaSink("out", properties={"partitioner": "random"}))
    with pytest.raises(ConfigurationError, match="partitioner='random': its keys need murmur2"):
        job.definition()


def test_it_shows_with_its_two_ends() -> None:
    description = by_id().describe()
    assert "by-id         key_by(" in description
    assert "by-id-sink    KafkaSink(topic=counts-by-id-repartition" in description
    assert "by-id-source  KafkaSource(topics=counts-by-id-repartition" in description
    assert "n2 --> n3" in by_id().definition().mermaid()


@pytest.mark.parametrize("partitions", [1, {"a": 1, "b": 2}])
def test_of_streams_that_meet_before_a_key_by_the_earlier_record_is_written_first(partitions: Any) -> None:
    job = Job("merged")
    a, b = (job.source(KafkaSource(name, value=Json())) for name in "ab")
    keyed = a.merge(b).key_by(lambda value: "k", name="by-k", partitions=1)
    counted = keyed.window(Tumbling("10ms")).count(name="n")
    counted.final().sink(KafkaSink("out", value=Json()))
    counted.late().sink(KafkaSink("late", value=Json()))
    with MemoryRun(job, partitions=partitions) as run:
        for topic in "ab":
            for at_ms in range(100, 150, 10):
                run.send(topic, at_ms, timestamp=at_ms, partition=0)
        run.checkpoint()
        assert run.read("late") == []
        assert [record.value["value"] for record in run.read("out")] == [2, 2, 2, 2]


def test_a_tombstone_deletes_from_a_table_behind_a_key_by_that_sees_records() -> None:
    job = Job("renamed")
    users = job.source(KafkaSource("users", key=String(), value=Json()))
    table = users.key_by_records(lambda record: record.key.lower(), name="by-name").table("users")
    visits = job.source(KafkaSource("visits", key=String(), value=Json())).key_by(lambda name: name, name="of")
    visits.join(table, lambda name, user: [name, user], how="left").sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        for user in ({"id": 1}, None):
            run.send("users", user, "ANN")
            run.checkpoint()
            run.send("visits", "ann")
            run.checkpoint()
        assert outputs(run) == [["ann", {"id": 1}], ["ann", None]]


def test_a_record_without_a_new_key_has_gone_wrong() -> None:
    job = Job("keyless")
    keyed = job.source(KafkaSource("in")).key_by_records(lambda record: record.key, name="again")
    keyed.sink(KafkaSink("out"))
    with MemoryRun(job) as run:
        run.send("in", b"x")
        with pytest.raises(UserCodeError, match=r"key_by_records\(.*can't be None"):
            run.checkpoint()


@pytest.mark.parametrize("keyed", [True, False])
def test_of_the_topics_of_one_source_the_earlier_record_goes_first(keyed: bool) -> None:
    job = Job("several")
    stream = job.source(KafkaSource(["a", "b"], key=String(), value=Json()))
    stream = stream if keyed else stream.key_by(lambda value: "k", name="by-k")
    counted = stream.window(Tumbling("10ms")).count(name="n")
    counted.final().sink(KafkaSink("out", value=Json()))
    counted.late().sink(KafkaSink("late", value=Json()))
    with MemoryRun(job) as run:
        for topic in "ab":
            for at_ms in range(100, 150, 10):
                run.send(topic, at_ms, "k", timestamp=at_ms)
        run.checkpoint()
        assert run.read("late") == []
        assert [record.value["value"] for record in run.read("out")] == [2, 2, 2, 2]
