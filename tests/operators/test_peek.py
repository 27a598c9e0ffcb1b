"""What only looks at records leaves them as they are."""

from __future__ import annotations

import pytest

from twopc import Job, Json, KafkaSink, KafkaSource, Record
from twopc.testing import MemoryRun


def test_a_function_sees_every_value_and_the_records_go_on() -> None:
    seen: list[int] = []
    job = Job("peek")
    job.source(KafkaSource("in", value=Json())).peek(seen.append).sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        for number in range(3):
            run.send("in", number)
        run.checkpoint()
        assert [record.value for record in run.read("out")] == seen == [0, 1, 2]


def test_a_function_sees_whole_records() -> None:
    seen: list[Record] = []
    job = Job("peek-records")
    job.source(KafkaSource("in")).peek_records(seen.append).sink(KafkaSink("out"))
    with MemoryRun(job) as run:
        run.send("in", b"a", b"key", timestamp=5)
        run.checkpoint()
    assert [(record.key, record.value, record.timestamp, record.topic) for record in seen] == [(b"key", b"a", 5, "in")]


def test_a_function_that_looks_again_after_a_crash_changes_no_output() -> None:
    seen: list[bytes] = []
    job = Job("peek-again")
    job.source(KafkaSource("in")).peek(seen.append).sink(KafkaSink("out"))
    with MemoryRun(job) as run:
        run.send("in", b"a")
        run.crash()
        run.checkpoint()
        assert [record.value for record in run.read("out")] == [b"a"]
    assert seen == [b"a", b"a"]


def test_records_are_printed_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    job = Job("print")
    raw = job.source(KafkaSource("in", value=Json()))
    raw.print().map(lambda value: value * 2).print("doubled").sink(KafkaSink("out", value=Json()))
    with MemoryRun(job) as run:
        run.send("in", 1, b"key")
        run.send("in", 2)
        run.checkpoint()
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "doubled: in[0]@0 b'key': 2",
        "doubled: in[0]@1 None: 4",
        "in[0]@0 b'key': 1",
        "in[0]@1 None: 2",
    ]


def test_a_job_shows_where_it_prints() -> None:
    job = Job("shown")
    job.source(KafkaSource("in")).print("raw").print().peek(len).sink(KafkaSink("out"))
    assert [str(operator) for operator in job.operators[1:-1]] == ["print('raw')", "print()", "peek(len)"]
    assert [operator.id for operator in job.operators[1:-1]] == ["print-1", "print-2", "peek-1"]
