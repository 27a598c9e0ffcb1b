"""Records that go wrong: what the policies make of them, at every place of a job, and through crashes."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twopc import (
    ConfigurationError,
    DeadLetter,
    Fail,
    Job,
    Json,
    KafkaSink,
    KafkaSource,
    Record,
    Skip,
    String,
    Tumbling,
    Window,
)
from twopc.error_policy import ErrorPolicy
from twopc.errors import UserCodeError
from twopc.testing import MemoryRun
from twopc.testing.memory.run import Moment

AFTER: tuple[Moment, ...] = ("processing", "pre-commit", "completion")


def checked(order: dict[str, Any]) -> dict[str, Any]:
    if order["kind"] == "map":
        raise LookupError("no such article")
    return order


def number(seen: int | None, order: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    if order["kind"] == "state":
        raise ArithmeticError("not to be counted")
    return (seen or 0) + 1, order | {"seen": (seen or 0) + 1}


def lines(order: dict[str, Any]) -> Iterator[Any]:
    yield [order["id"], order["seen"], 0]
    if order["kind"] == "half-way":
        raise OSError("the second line is torn")
    yield {1, 2} if order["kind"] == "encode" else [order["id"], order["seen"], 1]


def is_large(record: Record) -> bool:
    if record.value["kind"] == "branch":
        raise RuntimeError("neither large nor small")
    return True


def orders(policy: ErrorPolicy) -> Job:
    """A job in which each kind of record fails at another place."""
    job = Job("shop", on_error=policy)
    counted = (
        job.source(KafkaSource("orders", key=String(), value=Json()))
        .map(checked, name="checked")
        .stateful_map(number, name="number")
    )
    counted.flat_map(lines, name="lines").sink(KafkaSink("lines", key=String(), value=Json()))
    counted.filter_records(is_large).sink(KafkaSink("large", key=String(), value=Json()))
    return job


BAD = ("value", "key", "no-key", "map", "state", "half-way", "encode", "branch")

COUNTED = ("good", "half-way", "encode", "branch")
"""The kinds that come through the stateful_map."""


def send(run: MemoryRun, kind: str, number: int, key: str) -> bytes:
    value = b"{torn" if kind == "value" else json.dumps({"id": number, "kind": kind}).encode()
    raw_key = {"key": b"\xff", "no-key": None}.get(kind, key.encode())
    run.send_raw("orders", value, raw_key, partition=int(key))
    return value


class Expected:
    """What must come out of the records that were sent, by topic."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Any]] = []
        self.large: list[tuple[str, int]] = []
        self.dead: Counter[bytes] = Counter()
        self.seen: Counter[str] = Counter()

    def note(self, kind: str, number: int, key: str, value: bytes) -> None:
        if kind in COUNTED:
            self.seen[key] += 1
            first = (key, [number, self.seen[key], 0])
            second = (key, [number, self.seen[key], 1])
            self.lines += {"half-way": [], "encode": [first]}.get(kind, [first, second])
            self.large += [] if kind == "branch" else [(key, number)]
        self.dead[value] += kind in BAD


def by_key(pairs: list[tuple[str, Any]]) -> dict[str, list[Any]]:
    return {key: [value for other, value in pairs if other == key] for key, _ in pairs}


@pytest.mark.parametrize(("policy", "parallelism"), [(DeadLetter("dead"), 1), (DeadLetter("dead"), 2), (Skip(), 2)])
@given(
    calls=st.lists(
        st.one_of(
            st.tuples(st.sampled_from(("good", "good", *BAD)), st.sampled_from("0123")),
            st.tuples(st.just("crash"), st.sampled_from(AFTER)),
            st.tuples(st.just("checkpoint"), st.just("")),
        ),
        max_size=30,
    )
)
@settings(deadline=None, max_examples=60)
def test_good_records_and_dead_letters_are_exact_through_crashes(
    policy: ErrorPolicy, parallelism: int, calls: list[tuple[str, Any]]
) -> None:
    expected = Expected()
    with MemoryRun(orders(policy), partitions=4, parallelism=parallelism) as run:
        for index, (kind, what) in enumerate(calls):
            if kind == "crash":
                run.crash(after=what)
            elif kind == "checkpoint":
                run.checkpoint()
            else:
                expected.note(kind, index, what, send(run, kind, index, what))
        run.checkpoint()
        assert by_key([(each.key, each.value) for each in run.read("lines")]) == by_key(expected.lines)
        assert by_key([(each.key, each.value["id"]) for each in run.read("large")]) == by_key(expected.large)
        if policy.sink_id is not None:
            dead = run.read("dead")
            assert Counter(record.value for record in dead) == +expected.dead
            assert all(dict(record.headers or ())["__connect.errors.topic"] == b"orders" for record in dead)


STAGES = {
    "value": ("VALUE_CONVERTER", "decoding the value", "orjson.JSONDecodeError"),
    "key": ("KEY_CONVERTER", "decoding the key", "UnicodeDecodeError"),
    "map": ("TRANSFORMATION", "map(checked)", "LookupError"),
    "state": ("TRANSFORMATION", "stateful_map(number, name='number')", "ArithmeticError"),
    "no-key": ("TRANSFORMATION", "stateful_map(number, name='number')", "twopc.errors.UserCodeError"),
    "half-way": ("TRANSFORMATION", "flat_map(lines)", "OSError"),
    "branch": ("TRANSFORMATION", "filter_records(is_large)", "RuntimeError"),
    "encode": ("KAFKA_PRODUCE", "encoding a value for topic lines", "TypeError"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_dead_letter_says_in_the_headers_of_kafka_connect_what_went_wrong(kind: str) -> None:
    with MemoryRun(orders(DeadLetter("dead"))) as run:
        send(run, "good", 0, "0")
        value = send(run, kind, 1, "0")
        run.checkpoint()
        (dead,) = run.read("dead")
    headers = {name.removeprefix("__connect.errors."): (data or b"").decode() for name, data in dead.headers or ()}
    stage, doing, exception = STAGES[kind]
    assert dead.value == value
    assert dead.key == {"key": b"\xff", "no-key": None}.get(kind, b"0")
    assert (headers["topic"], headers["partition"], headers["offset"]) == ("orders", "0", "1")
    assert (headers["stage"], headers["class.name"], headers["connector.name"]) == (stage, doing, "shop")
    assert headers["exception.class.name"] == exception
    assert headers["exception.message"]
    assert headers["exception.message"] in headers["exception.stacktrace"]


def test_a_dead_letter_keeps_its_own_headers_and_its_timestamp() -> None:
    with MemoryRun(orders(DeadLetter("dead"))) as run:
        run.send_raw("orders", b"{torn", b"0", headers={"trace": b"7"}, timestamp=123)
        run.checkpoint()
        (dead,) = run.read("dead")
    assert (dead.timestamp, (dead.headers or ())[0]) == (123, ("trace", b"7"))


def test_a_source_has_a_policy_of_its_own_before_that_of_the_job() -> None:
    job = Job("two", on_error=DeadLetter("dead"))
    strict = job.source(KafkaSource("strict", value=Json()), on_error=Fail())
    strict.merge(job.source(KafkaSource("lax", value=Json()))).map(checked).sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        run.send("lax", {"kind": "map"})
        run.checkpoint()
        assert len(run.read("dead")) == 1
        run.send("strict", {"kind": "map"})
        with pytest.raises(UserCodeError, match=r"record strict\[0\]@0: map\(checked\) failed: LookupError"):
            run.checkpoint()


@pytest.mark.parametrize("policy", [Skip(most=0.001), DeadLetter("dead", most=0.001)])
def test_more_than_the_limit_ends_the_job_with_the_policy_the_figures_and_the_last_record(policy: ErrorPolicy) -> None:
    with MemoryRun(orders(policy)) as run:
        for index in range(10):
            send(run, "map", index, "0")
        run.checkpoint()
        send(run, "map", 10, "0")
        allows = r"11 of the last 10,000 records .* of 'source-1' went wrong, and \w+\(.*most=0.001\) allows 10"
        with pytest.raises(UserCodeError, match=allows + r"\. The last: record orders\[0\]@10: .*LookupError"):
            run.checkpoint()


def test_the_limit_is_of_the_last_ten_thousand_records() -> None:
    with MemoryRun(orders(Skip(most=0.0001))) as run:
        for start in (0, 10_000, 20_000):
            for index in range(10_000):
                send(run, "good" if index else "value", start + index, "0")
            run.checkpoint()
        assert len(run.read("large")) == 3 * 9_999


@pytest.mark.parametrize("most", [-0.1, 1, 1.5, "1%", True])
def test_a_limit_is_a_part_of_one(most: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"such as 0\.01"):
        Skip(most=most)


def test_a_policy_is_one_of_three() -> None:
    with pytest.raises(ConfigurationError, match=r"Fail\(\), Skip\(\) or DeadLetter"):
        Job("shop", on_error="skip")  # type: ignore[arg-type]


def test_the_first_of_each_kind_that_is_skipped_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with MemoryRun(orders(Skip())) as run, caplog.at_level(logging.WARNING, "twopc.runtime.record_errors"):
        for index in range(3):
            send(run, "map", index, "0")
            send(run, "value", index, "0")
        run.checkpoint()
    said = [record.getMessage() for record in caplog.records if record.name == "twopc.runtime.record_errors"]
    assert len(said) == 2
    assert any("orders[0]@0: map(checked) failed: LookupError: no such article" in each for each in said)


def test_the_sink_of_dead_letters_is_one_of_the_jobs_own() -> None:
    job = orders(DeadLetter("dead")).definition()
    sink = job.sinks["dead-letters-dead"]
    assert sink.outputs == ("dead",)
    assert "dead-letters-dead" in job.describe().splitlines()[-1]
    assert job.describe().endswith("<- errors of source-1")
    assert "n0 -. errors .-> n" in job.mermaid()
    assert Job.of(job).definition() == job


@pytest.mark.parametrize("source", [KafkaSource("in"), KafkaSource(["other", "in"]), KafkaSource(pattern="i.*")])
def test_a_job_that_reads_its_own_dead_letters_is_refused(source: KafkaSource) -> None:
    job = Job("j", on_error=DeadLetter("in"))
    job.source(source).sink(KafkaSink("out"))
    with pytest.raises(ConfigurationError, match="job 'j' writes 'in' and 'source-1' reads it"):
        job.definition()


def test_dead_letters_may_have_the_name_of_an_input_on_another_cluster() -> None:
    job = Job("j", on_error=DeadLetter("in"))
    job.source(KafkaSource("in", bootstrap_servers="there:1")).sink(KafkaSink("out"))
    assert "dead-letters-in" in job.definition().sinks


def test_a_function_is_called_once_for_each_record_whatever_fails_beside_it() -> None:
    calls: Counter[int] = Counter()

    def once(value: int) -> int:
        calls[value] += 1
        return 10 // (value % 3)

    job = Job("once", on_error=Skip())
    job.source(KafkaSource("in", value=Json())).map(once).sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        for value in range(100):
            run.send("in", value)
        run.checkpoint()
        assert len(run.read("out")) == 66
    assert set(calls.values()) == {1}


def test_a_function_that_raises_stop_iteration_has_failed() -> None:
    def torn(value: int) -> int:
        return next(iter([] if value == 1 else [value]))

    job = Job("torn", on_error=DeadLetter("dead"))
    job.source(KafkaSource("in", value=Json())).map(torn).sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        for value in range(3):
            run.send("in", value)
        run.checkpoint()
        assert [record.value for record in run.read("out")] == [0, 2]
        assert [record.value for record in run.read("dead")] == [b"1"]


def test_what_a_sink_chooses_no_topic_for_is_a_dead_letter_and_all_others_are_written() -> None:
    job = Job("chosen", on_error=DeadLetter("dead"))
    chosen = KafkaSink(lambda record: {"a": "of-a", "b": "of-b"}[record.value], value=Json())
    job.source(KafkaSource("in", value=Json())).sink(chosen)
    with MemoryRun(job) as run:
        for value in ("a", "c", "b", "c", "a"):
            run.send("in", value)
        run.checkpoint()
        assert [record.value for record in run.read("of-a")] == ["a", "a"]
        assert [record.value for record in run.read("of-b")] == ["b"]
        assert [record.value for record in run.read("dead")] == [b'"c"', b'"c"']


def test_what_the_client_does_not_take_is_a_dead_letter() -> None:
    job = Job("typed", on_error=DeadLetter("dead"))
    job.source(KafkaSource("in", value=Json())).sink(KafkaSink("out"))
    with MemoryRun(job) as run:
        for value in ("a", 1, "b"):
            run.send("in", value)
        run.checkpoint()
        assert [record.value for record in run.read("out")] == [b"a", b"b"]
        assert [record.value for record in run.read("dead")] == [b"1"]


def not_the_first(window: Window) -> Any:
    if window.start == 0:
        raise LookupError("the first is not wanted")
    return window.value


def test_what_goes_wrong_with_a_window_is_an_error_of_its_key_and_not_of_the_record_that_closed_it() -> None:
    job = Job("windows", on_error=DeadLetter("dead"))
    clicks = job.source(KafkaSource("clicks", key=String(), value=Json()))
    counted = clicks.window(Tumbling("1s")).count(name="clicks-a-second")
    counted.final().map(not_the_first).sink(KafkaSink("counts", key=String(), value=Json()))
    with MemoryRun(job) as run:
        for key, at_ms in (("victim", 1), ("innocent", 1_500), ("last", 9_000)):
            run.send("clicks", at_ms, key, timestamp=at_ms)
        run.checkpoint()
        assert [(record.key, record.value) for record in run.read("dead")] == [(b"victim", None)]
        assert [(record.key, record.value) for record in run.read("counts")] == [("innocent", 1)]


def test_an_error_of_a_window_names_its_key_and_who_closed_it() -> None:
    job = Job("windows")
    clicks = job.source(KafkaSource("clicks", key=String(), value=Json()))
    counted = clicks.window(Tumbling("1s")).count(name="clicks-a-second")
    counted.final().map(not_the_first).sink(KafkaSink("counts", key=String(), value=Json()))
    made = "^what a timer or window of key 'victim', due at 1000, made"
    with MemoryRun(job) as run:
        run.send("clicks", 1, "victim", timestamp=1)
        run.advance(9_000)
        with pytest.raises(UserCodeError, match=f"{made} as time passed: map"):
            run.checkpoint()
        run.send("clicks", 9_000, "last", timestamp=9_000)
        with pytest.raises(UserCodeError, match=rf"{made} at record clicks\[0\]@1: map"):
            run.checkpoint()


def test_a_time_without_end_is_an_error_of_its_record() -> None:
    job = Job("windows", on_error=Skip())
    clicks = job.source(KafkaSource("clicks", key=String(), value=Json()))
    clicks.window(Tumbling("1s")).count(name="clicks-a-second").final().sink(
        KafkaSink("counts", key=String(), value=Json())
    )
    with MemoryRun(job) as run:
        for at_ms in (1, 2**63 - 1, 2, 9_000):
            run.send("clicks", at_ms, "a", timestamp=at_ms)
        run.checkpoint()
        assert [record.value["value"] for record in run.read("counts")] == [2]
