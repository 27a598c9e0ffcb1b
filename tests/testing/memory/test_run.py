"""What each call of a MemoryRun does."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import pytest
import two_sources

from tests.testing.memory.jobs import counting, failing, upper
from twopc import Avro, ConfigurationError, Job, Json, KafkaSink, KafkaSource, Record, StartingOffsets, UserCodeError
from twopc.testing import MemoryRun

VISIT = {
    "type": "record",
    "name": "Visit",
    "fields": [{"name": "user", "type": "string"}, {"name": "ms", "type": "long"}],
}


def values(records: list[Record]) -> list[object]:
    return [record.value for record in records]


def test_what_is_sent_comes_out_at_the_checkpoint() -> None:
    with MemoryRun(upper) as run:
        run.send("in", b"a")
        assert run.read("out") == []
        run.checkpoint()
        assert values(run.read("out")) == [b"A"]


def test_what_was_read_is_not_read_again() -> None:
    with MemoryRun(upper) as run:
        run.send("in", b"a")
        run.checkpoint()
        run.read("out")
        run.send("in", b"b")
        run.checkpoint()
        assert values(run.read("out")) == [b"B"]
        assert run.read("out") == []


def test_a_record_keeps_key_timestamp_and_headers() -> None:
    with MemoryRun(upper, partitions=4) as run:
        run.send("in", b"a", b"key", timestamp=5, headers={"h": b"1", "none": None}, partition=3)
        run.checkpoint()
        [record] = run.read("out")
    assert (record.key, record.timestamp, record.headers) == (b"key", 5, [("h", b"1"), ("none", None)])
    assert (record.topic, record.offset) == ("out", 0)


def test_a_record_without_a_timestamp_has_the_same_one_in_every_run() -> None:
    stamps = set()
    for _ in range(2):
        with MemoryRun(upper) as run:
            run.send("in", b"a")
            run.checkpoint()
            stamps |= {record.timestamp for record in run.read("out")}
    assert stamps == {1_700_000_000_000}


def test_keys_go_to_the_partitions_that_kafkas_clients_choose_and_others_in_turn() -> None:
    # As Java's clients do it: the murmur2 of "foobar" is -790332482.
    with MemoryRun(upper, partitions=7) as run:
        run.send("in", b"x", b"foobar")
        for _ in range(9):
            run.send("in", b"y")
        run.checkpoint()
        records = run.read("out")
    assert records[0].partition == (-790332482 & 0x7FFFFFFF) % 7
    assert [record.partition for record in records[1:]] == [0, 1, 2, 3, 4, 5, 6, 0, 1]


def test_output_of_several_partitions_is_read_in_the_order_of_writing() -> None:
    with MemoryRun(counting, partitions=4) as run:
        for number in range(20):
            run.send("in", number, f"k{number % 5}")
        run.checkpoint()
        assert [record.value["value"] for record in run.read("out")] == list(range(20))


def test_serdes_are_those_of_the_source_and_of_the_sink() -> None:
    job = Job("avro")
    job.source(KafkaSource("visits", value=Avro(VISIT))).map(lambda visit: visit["ms"]).sink(
        KafkaSink("ms", value=Json())
    )
    with MemoryRun(job) as run:
        run.send("visits", {"user": "ada", "ms": 5})
        run.checkpoint()
        assert values(run.read("ms")) == [5]
        with pytest.raises(ValueError, match=r"Visit.ms is missing, and has no default"):
            run.send("visits", {"user": "ada"})


def test_a_tombstone_is_a_record() -> None:
    job = Job("tombstones")
    job.source(KafkaSource("in", value=Json())).sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        run.send("in", None, b"key")
        run.checkpoint()
        assert [(record.key, record.value) for record in run.read("out")] == [(b"key", None)]


def test_bytes_that_cannot_be_decoded_end_the_job_with_the_error_of_production() -> None:
    with MemoryRun(counting) as run:
        run.send("in", 1, "a")
        run.send_raw("in", b"{not json", b"a")
        with pytest.raises(UserCodeError, match=r"record in\[0\]@1: decoding the value failed: JSONDecodeError"):
            run.checkpoint()


def test_a_function_that_raises_ends_the_job_and_nothing_of_its_interval_is_read() -> None:
    with MemoryRun(failing) as run:
        run.send("in", 8)
        run.checkpoint()
        run.send("in", 9)
        run.send("in", 7)
        with pytest.raises(
            UserCodeError, match=r"record in\[0\]@2: map\(halved\) failed: ZeroDivisionError.*jobs.py"
        ) as met:
            run.checkpoint()
        assert values(run.read("out")) == [8]
    causes = []
    error: BaseException | None = met.value
    while error is not None:
        causes.append(type(error))
        error = error.__cause__
    assert ZeroDivisionError in causes


def test_a_job_that_failed_meets_the_same_record_again() -> None:
    with MemoryRun(failing) as run:
        run.send("in", 7)
        for _ in range(2):
            with pytest.raises(UserCodeError, match=r"in\[0\]@0"):
                run.checkpoint()


def test_a_record_that_cannot_be_encoded_is_named() -> None:
    job = Job("unencodable")
    job.source(KafkaSource("in")).map(lambda value: object()).sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        run.send("in", b"a")
        with pytest.raises(UserCodeError, match=r"in\[0\]@0: encoding a value for topic out"):
            run.checkpoint()


def test_a_value_that_a_producer_does_not_take_is_named() -> None:
    job = Job("number")
    job.source(KafkaSource("in")).map(len).sink(KafkaSink("out"))
    with MemoryRun(job) as run:
        run.send("in", b"a")
        with pytest.raises(UserCodeError, match=r"in\[0\]@0: producing to topic out.*must be bytes"):
            run.checkpoint()


def test_the_state_is_that_of_the_last_checkpoint() -> None:
    with MemoryRun(counting, partitions=3) as run:
        run.send("in", 1, "a")
        assert run.state("count", "a") is None
        run.checkpoint()
        run.send("in", 2, "a")
        assert (run.state("count", "a"), run.state("count", "b")) == (1, None)
        run.checkpoint()
        assert run.state("count", "a") == 2


def test_a_key_with_a_state_in_two_partitions_needs_a_partition() -> None:
    with MemoryRun(counting, partitions=2) as run:
        for partition in (0, 1, 1):
            run.send("in", 1, "a", partition=partition)
        run.checkpoint()
        with pytest.raises(ConfigurationError, match="in each of the partitions 0, 1"):
            run.state("count", "a")
        assert (run.state("count", "a", partition=0), run.state("count", "a", partition=1)) == (1, 2)


def test_an_operator_without_state_is_told_with_those_that_have_one() -> None:
    with MemoryRun(counting) as run, pytest.raises(ConfigurationError, match=r"'map' .* keeps no state: only count"):
        run.state("map", "a")


def test_a_large_state_goes_through_files() -> None:
    with MemoryRun(counting) as run:
        for number in range(2_000):
            run.send("in", number, f"key-{number:060}")
        run.checkpoint()
        run.crash()
        run.send("in", 0, f"key-{7:060}")
        run.checkpoint()
        assert run.read("out")[-1].value["seen"] == 2
        assert run.state("count", f"key-{7:060}") == 2


def test_topics_that_the_job_does_not_have_are_told_with_those_that_it_has() -> None:
    with MemoryRun(upper) as run:
        with pytest.raises(ConfigurationError, match="job 'upper' does not read topic 'inn': it reads in"):
            run.send("inn", b"a")
        with pytest.raises(ConfigurationError, match="job 'upper' does not write topic 'in': it writes out"):
            run.read("in")


def test_a_partition_that_is_not_there_is_refused() -> None:
    with MemoryRun(upper, partitions=2) as run, pytest.raises(ConfigurationError, match="has no partition 2: it has 2"):
        run.send("in", b"a", partition=2)


def test_topics_may_have_numbers_of_partitions_of_their_own() -> None:
    job = Job("join")
    table = job.source(KafkaSource("customers")).table("customers")
    job.source(KafkaSource("orders")).join(table, lambda order, _: order).sink(KafkaSink("out"))
    with MemoryRun(job, partitions={"orders": 2, "customers": 2}) as run:
        run.send("orders", b"1", b"a", partition=1)
    with pytest.raises(ConfigurationError, match=r"customers: 3, orders: 2"):
        MemoryRun(job, partitions={"orders": 2, "customers": 3})


@pytest.mark.parametrize(
    ("partitions", "said"),
    [
        ({"inn": 2}, "names topic 'inn', which job 'upper' does not have: it has in, out"),
        ({"in": 0}, "at least 1 partition, not 0"),
        ("2", "not '2'"),
    ],
)
def test_numbers_of_partitions_that_cannot_be_are_refused_by_name(partitions: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        MemoryRun(upper, partitions=partitions)


def test_a_topic_that_a_function_names_is_read_with_the_serdes_of_its_sink() -> None:
    job = Job("route")
    job.source(KafkaSource("in", value=Json())).sink(KafkaSink(lambda record: f"out-{record.value}", value=Json()))
    with MemoryRun(job) as run:
        run.send("in", 1)
        run.checkpoint()
        assert values(run.read("out-1")) == [1]
        assert run.read("out-2") == []


def test_several_sources_merge_and_go_on_to_several_sinks() -> None:
    with MemoryRun(two_sources.job, partitions=2) as run:
        run.send("orders-web", {"cents": 20_000})
        run.send("orders-app", {"cents": 5})
        run.send("orders-app", {"cents": 5, "test": True})
        run.checkpoint()
        every = run.read("orders-all")
        assert sorted(record.value["cents"] for record in every) == [5, 20_000]
        assert values(run.read("orders-large")) == [{"cents": 20_000}]


def test_a_source_that_begins_at_the_end_reads_what_is_sent_since() -> None:
    job = Job("latest")
    job.source(KafkaSource("in", start=StartingOffsets.latest())).sink(KafkaSink("out"))
    with MemoryRun(job) as run:
        run.send("in", b"a")
        run.crash()
        run.checkpoint()
        assert values(run.read("out")) == [b"a"]


def test_output_without_transactions_is_there_at_once_and_again_after_a_crash() -> None:
    job = Job("at-least-once")
    job.source(KafkaSource("in")).sink(KafkaSink("out", delivery_guarantee="at_least_once"))
    with MemoryRun(job) as run:
        run.send("in", b"a")
        run.crash()
        run.checkpoint()
        assert values(run.read("out")) == [b"a", b"a"]


def test_two_runs_of_one_job_know_nothing_of_each_other() -> None:
    with MemoryRun(counting) as one, MemoryRun(counting) as other:
        one.send("in", 1, "a")
        other.send("in", 2, "a")
        other.send("in", 3, "a")
        one.checkpoint()
        other.checkpoint()
        assert [record.value["seen"] for record in one.read("out")] == [1]
        assert [record.value["seen"] for record in other.read("out")] == [1, 2]


def test_several_subtasks_take_turns_the_same_way_every_time() -> None:
    outputs = []
    for _ in range(2):
        with MemoryRun(counting, partitions=4, parallelism=2) as run:
            for number in range(50):
                run.send("in", number, f"k{number % 9}")
            run.checkpoint()
            outputs.append([(record.partition, record.offset, record.value["value"]) for record in run.read("out")])
    assert outputs[0] == outputs[1]
    assert sorted(value for _, _, value in outputs[0]) == list(range(50))


def test_more_subtasks_than_partitions_leave_some_without_work() -> None:
    with MemoryRun(upper, parallelism=3) as run:
        run.send("in", b"a")
        run.checkpoint()
        assert values(run.read("out")) == [b"A"]


def test_a_run_that_was_closed_refuses_further_calls() -> None:
    with MemoryRun(upper) as run:
        pass
    with pytest.raises(ConfigurationError, match="was closed"):
        run.checkpoint()


def test_a_job_that_is_not_complete_is_refused() -> None:
    job = Job("loose")
    job.source(KafkaSource("in"))
    with pytest.raises(ConfigurationError, match="no sink"):
        MemoryRun(job)


def test_no_thread_outlives_a_run() -> None:
    before = threading.active_count()
    with MemoryRun(upper) as run:
        run.send("in", b"a")
        run.checkpoint()
        assert threading.active_count() == before


def test_the_kit_starts_no_jvm_and_needs_no_wire() -> None:
    program = (
        "import sys; from tests.testing.memory.jobs import upper; from twopc.testing import MemoryRun\n"
        "with MemoryRun(upper) as run: run.send('in', b'a'); run.checkpoint()\n"
        "print(sorted({'grpc', 'pyspark', 'py4j', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]"


def test_the_order_of_hashes_decides_nothing() -> None:
    program = (
        "from tests.testing.memory.jobs import counting; from twopc.testing import MemoryRun\n"
        "with MemoryRun(counting, partitions=4, parallelism=3) as run:\n"
        "    for number in range(30): run.send('in', number, f'k{number % 7}')\n"
        "    run.crash(); run.checkpoint()\n"
        "    print([(record.partition, record.offset, record.value) for record in run.read('out')])\n"
    )
    shown = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(shown) == 1


@pytest.mark.parametrize(
    "far", [KafkaSink("in", bootstrap_servers="far:1"), KafkaSink("out", bootstrap_servers="far:1")], ids=["in", "out"]
)
def test_topics_of_one_name_on_two_clusters_are_refused_because_in_memory_they_would_be_one(far: KafkaSink) -> None:
    job = Job("between")
    stream = job.source(KafkaSource("in"), name="near")
    stream.sink(KafkaSink("out"), name="beside")
    stream.sink(far, name="far")
    with pytest.raises(
        ConfigurationError, match=rf"'{far.topic}' is on other brokers for '(near|beside)' than for 'far'"
    ):
        MemoryRun(job)
