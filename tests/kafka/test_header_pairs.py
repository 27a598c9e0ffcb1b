"""Headers are written as they are, or their record is refused: in memory as with a broker."""

from __future__ import annotations

from typing import Any

import pytest

from twopc import DeadLetter, Job, KafkaSink, KafkaSource, Record
from twopc.kafka.output.handover import ClientColumns, RecordHandover
from twopc.testing import MemoryRun

WRONG: list[tuple[Any, str]] = [
    ([(5, b"x")], "the name of a header must be text, not 5"),
    ([(b"name", b"x")], "the name of a header must be text, not b'name'"),
    ([(None, b"x")], "the name of a header must be text, not None"),
    ([("a\0b", b"x")], "has a NUL in it"),
    ([("\udcff", b"x")], "surrogates not allowed"),
    ([("a", "\udcff")], "surrogates not allowed"),
    ([["name", b"x"]], r"headers must be pairs of a name and a value, and \['name', b'x'\] is none"),
    ({"name": b"x"}, "headers must be pairs of a name and a value, and 'name' is none"),
]


class Client:
    """Takes what it is given."""

    writer = None

    def __init__(self) -> None:
        self.taken: list[Any] = []

    @property
    def client(self) -> Client:
        return self

    def produce(self, *record: Any) -> None:
        self.taken.append(record)

    def poll(self, seconds: float) -> None: ...

    def check_alive(self) -> None: ...


@pytest.mark.parametrize(("headers", "complaint"), WRONG)
def test_headers_that_would_be_written_as_others_never_come_to_a_producer(headers: Any, complaint: str) -> None:
    client = Client()
    columns = ClientColumns([b"k", b"k"], [b"1", b"2"], [0, 0], [1, 1], [[("name", b"x"), ("none", None)], headers])
    with pytest.raises((TypeError, ValueError), match=complaint):
        RecordHandover(client, "out", columns).proceed()
    assert [record[-1] for record in client.taken] == [[("name", b"x"), ("none", None)]]


@pytest.mark.parametrize(("headers", "complaint"), WRONG)
def test_a_record_with_such_headers_is_a_dead_letter(headers: Any, complaint: str) -> None:
    def with_headers(record: Record) -> Record:
        return record.replace(headers=headers)

    job = Job("headers", on_error=DeadLetter("dead"))
    job.source(KafkaSource("in")).map_records(with_headers).sink(KafkaSink("out"))
    with MemoryRun(job) as run:
        run.send("in", b"1")
        run.checkpoint()
        assert run.read("out") == []
        said = dict(run.read("dead")[0].headers or ())["__connect.errors.exception.message"]
    assert said is not None
    with pytest.raises(ValueError, match=complaint):
        raise ValueError(said.decode())
