"""A record that can't be written as it is stops the job by name, at once: it is neither changed nor tried again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from kafka import KafkaProducer

from tests.jobs.cli import CommandResult, twopc
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
import os, sys
from twopc import DeadLetter, Fail, Job, KafkaSink, KafkaSource, String

def leave(value):
    if value == "leave":
        sys.exit(0)
    return value

def interrupt(value):
    if value == "leave":
        raise KeyboardInterrupt
    return value

def leave_by_record(record):
    if record.value == "leave":
        raise GeneratorExit
    return [record]

name = os.environ["JOB_NAME"]
source = Job(name).source(KafkaSource(name + "-in", value=String()))
sink = KafkaSink(name + "-out", value=String())
plain = source.sink(sink)
"""
NOW = 1_700_000_000_000


class Latin1(str):
    """Text whose bytes are not UTF-8."""

    __slots__ = ()

    def encode(self, encoding: str = "latin-1", errors: str = "strict") -> bytes:
        return super().encode("latin-1", errors)


class Play:
    """Runs the job over these records, into a topic with these settings."""

    def __init__(self, broker: Broker, folder: Path, name: str) -> None:
        self.servers, self._folder, self.name = broker.bootstrap_servers, folder, name

    def __call__(self, *records: Write, step: str = "", **settings: str) -> CommandResult:
        self.prepare(*records, **settings)
        return self.run(step)

    def prepare(self, *records: Write, **settings: str) -> None:
        create_topic(self.servers, f"{self.name}-in", settings={"message.timestamp.after.max.ms": str(2**62)})
        create_topic(
            self.servers, f"{self.name}-out", settings={key.replace("_", "."): value for key, value in settings.items()}
        )
        produce(self.servers, f"{self.name}-in", records)

    def run(self, step: str = "", on_error: str = "Fail()") -> CommandResult:
        job_file = self._folder / "job.py"
        job = JOB.replace("source.sink", f"source{step}.sink").replace("Job(name)", f"Job(name, on_error={on_error})")
        job_file.write_text(job)
        return twopc(
            *("run", str(job_file), "-b", self.servers, "--host", "process", "--until-end"),
            *("--checkpoint-dir", str(self._folder / "checkpoints"), "--checkpoint-interval", "200ms"),
            JOB_NAME=self.name,
        )

    def output(self) -> list[tuple[bytes | None, int]]:
        return [(record.value, record.timestamp) for record in read_topic(self.servers, f"{self.name}-out")]


@pytest.fixture
def play(broker: Broker, tmp_path: Path, topic: Callable[[], str]) -> Play:
    return Play(broker, tmp_path, topic())


def refused(finished: CommandResult, *words: str) -> None:
    assert finished.code == 1, finished.err
    assert "trying again" not in finished.err
    assert "Traceback" not in finished.err
    for word in words:
        assert word in finished.err, finished.err


def test_a_record_without_a_timestamp_has_none_in_the_output(play: Play) -> None:
    assert play(Write(b"none", timestamp=-1), Write(b"some", timestamp=NOW)).code == 0
    assert play.output() == [(b"none", -1), (b"some", NOW)]


def test_a_timestamp_that_the_client_cannot_write_is_refused(play: Play) -> None:
    zero = Write(b"old", timestamp=1)
    refused(
        play(zero, Write(b"older", timestamp=1), step=".map_records(lambda r: r.replace(timestamp=r.offset))"),
        f"{play.name}-in[0]@0",
        "timestamp",
        "map_records",
    )
    assert play.output() == []


def many(odd: Write, at: int = 150, count: int = 300) -> Sequence[Write]:
    records: list[Write] = [Write(b"%d" % index, b"k", timestamp=NOW) for index in range(count)]
    records[at] = odd
    return records


@pytest.mark.parametrize(
    ("odd", "settings", "words"),
    [
        pytest.param(
            Write(b"x"),
            {"cleanup_policy": "compact"},
            ["cleanup.policy", "map_records"],
            id="null key",
            marks=pytest.mark.proof,
        ),
        pytest.param(
            Write(b"x", timestamp=NOW + 100 * 365 * 86_400_000),
            {"message_timestamp_after_max_ms": "60000"},
            ["message.timestamp.after.max.ms"],
            id="timestamp",
            marks=pytest.mark.proof,
        ),
        pytest.param(Write(b"x" * 20_000), {"max_message_bytes": "15000"}, ["max.message.bytes"], id="too large there"),
    ],
)
def test_of_all_records_that_the_brokers_refused_together_the_one_at_fault_is_named(
    play: Play, odd: Write, settings: dict[str, str], words: list[str]
) -> None:
    refused(play(*many(odd), **settings), f"{play.name}-in[0]@150", *words)
    assert odd.value not in [value for value, _ in play.output()]


def test_a_record_that_is_too_large_for_the_client_names_the_property_of_the_sink(play: Play) -> None:
    refused(
        play(Write(b"small"), Write(b"x" * 600_000), step=".map(lambda value: value * 2)"),
        f"{play.name}-in[0]@1",
        "'message.max.bytes'",
    )


@pytest.mark.proof
def test_a_header_name_that_is_not_text_is_refused(play: Play) -> None:
    write_torn_header(play)
    refused(play.run(), f"{play.name}-in[0]@1", "UTF-8")


def test_a_header_name_that_is_not_text_follows_the_policy(play: Play) -> None:
    write_torn_header(play)
    create_topic(play.servers, f"{play.name}-dead")
    finished = play.run(step=".map_records(lambda record: record)", on_error="DeadLetter(name + '-dead')")
    assert finished.code == 0, finished.err
    assert [value for value, _ in play.output()] == [b"0", b"2"]
    [dead] = read_topic(play.servers, f"{play.name}-dead")
    assert dead.value == b"1"


def write_torn_header(play: Play) -> None:
    """Write three records, of which the second has a header whose name is not UTF-8."""
    play.prepare(Write(b"0"))
    producer = KafkaProducer(bootstrap_servers=play.servers)
    producer.send(f"{play.name}-in", b"1", headers=[(Latin1("\xff\xfe"), b"1")]).get(60)
    producer.close()
    produce(play.servers, f"{play.name}-in", [Write(b"2")])


@pytest.mark.proof
@pytest.mark.parametrize("name", [r"\udcff", r"a\0b"])
def test_a_header_name_that_would_break_the_client_is_refused(play: Play, name: str) -> None:
    step = f".map_records(lambda record: record.replace(headers=[('{name}', b'1')]))"
    refused(play(Write(b"0"), step=step), f"{play.name}-in[0]@0", "producing to topic")


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (".map(leave)", ["map(leave)", "SystemExit: 0"]),
        (".map(interrupt)", ["map(interrupt)", "KeyboardInterrupt"]),
        *(
            pytest.param(step, words, marks=pytest.mark.proof)
            for step, words in (
                (".filter(leave)", ["filter(leave)", "SystemExit: 0"]),
                (".flat_map_records(leave_by_record)", ["GeneratorExit"]),
                (".stateful_map(lambda state, value: (state, leave(value)), name='n')", ["SystemExit: 0"]),
            )
        ),
    ],
)
def test_whatever_a_function_raises_is_an_error_of_its_record(play: Play, step: str, words: list[str]) -> None:
    finished = play(Write(b"0", b"k"), Write(b"leave", b"k"), step=step)
    refused(finished, f"{play.name}-in[0]@1", *words)
    assert b"leave" not in [value for value, _ in play.output()]
