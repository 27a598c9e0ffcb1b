"""Jobs of several processes on real topics, in formats other than bytes, text and JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf.wrappers_pb2 import StringValue

from tests.jobs.cli import twopc
from twopc import Double, Float, Int, Long, Protobuf
from twopc.testing.broker import Broker
from twopc.testing.topics import Read, Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

Run = Callable[[str, list[Write]], list[Read]]

NAMED = """
from twopc import Job, KafkaSink, KafkaSource
from twopc.connect import HeaderSerde, SerdeContext


class Marked(HeaderSerde):
    where = None

    def open(self, context: SerdeContext):
        opened = Marked()
        opened.where = f"{'key' if context.is_key else 'value'} of {context.topic}"
        return opened

    def deserialize_with(self, data, headers):
        return data.decode() + dict(headers)["mark"].decode()

    def serialize_with(self, value, headers):
        return value.encode(), [*headers, ("written", self.where.encode())]


job = Job("{name}")
job.source(KafkaSource("{name}-in", value=Marked())).sink(KafkaSink("{name}-out", value=Marked()))
"""


EVERY_FORMAT = """
from decimal import Decimal

from google.protobuf.wrappers_pb2 import StringValue

from twopc import Avro, Double, Float, Int, Job, KafkaSink, KafkaSource, Long, Protobuf

TOTAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
ORDER = Avro({"type": "record", "name": "Order", "fields": [{"name": "total", "type": TOTAL}]})

job = Job("{name}")
numbers = job.source(KafkaSource("{name}-in", key=Int(), value=Long()))
for format, function in (
    (Int(), lambda n: n + 1),
    (Float(), lambda n: n / 2),
    (Double(), lambda n: n / 10),
    (ORDER, lambda n: {"total": Decimal(n) / 4}),
    (Protobuf(StringValue), lambda n: StringValue(value=f"no. {n}")),
):
    numbers.map(function).sink(KafkaSink("{name}-out", key=Long(), value=format))
"""


@pytest.fixture
def run(broker: Broker, topic: Callable[[], str], tmp_path: Path) -> Run:
    """Run the job of this text on this input, in two processes; return its output in order of values."""

    def run_job(text: str, records: list[Write]) -> list[Read]:
        name, servers = topic(), broker.bootstrap_servers
        for each in (f"{name}-in", f"{name}-out"):
            create_topic(servers, each, 2)
        produce(servers, f"{name}-in", records)
        (tmp_path / "job.py").write_text(text.replace("{name}", name))
        done = twopc(
            *("run", str(tmp_path / "job.py"), "-b", servers, "--host", "process", "--parallelism", "2"),
            *("--checkpoint-dir", str(tmp_path / "checkpoints"), "--until-end"),
        )
        assert done.code == 0, done.err
        return sorted(read_topic(servers, f"{name}-out"), key=lambda record: record.value or b"")

    return run_job


def test_every_format_is_read_and_written_in_processes_of_their_own(run: Run) -> None:
    numbers = (1, 2, 3)
    out = run(EVERY_FORMAT, [Write(Long().serialize(n), Int().serialize(n), partition=n % 2) for n in numbers])
    assert {record.key for record in out} == {Long().serialize(n) for n in numbers}
    expected = [
        each
        for n in numbers
        for each in (
            Int().serialize(n + 1),
            Float().serialize(n / 2),
            Double().serialize(n / 10),
            bytes([2, n * 25]),
            Protobuf(StringValue).serialize(StringValue(value=f"no. {n}")),
        )
    ]
    assert sorted(record.value or b"" for record in out) == sorted(each or b"" for each in expected)


def test_a_serde_is_opened_for_its_topic_in_every_process_and_has_the_headers(run: Run) -> None:
    out = run(NAMED, [Write(b"%d" % n, headers=(("mark", b"!"),), partition=n % 2) for n in range(4)])
    assert [record.value for record in out] == [b"%d!" % n for n in range(4)]
    for record in out:
        assert dict(record.headers) == {"mark": b"!", "written": f"value of {record.topic}".encode()}
