"""`twopc verify` as a user runs it, on topics of a real broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.jobs.cli import CommandResult, twopc
from tests.kafka.kit import eventually, grow_topic
from twopc.cli import main
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.kafka.clients.control_client import LATEST, ControlClient
from twopc.kafka.topic_partition import TopicPartition as Partition
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic
from twopc.verify.load import load_value, read_load

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource


def count(total, value):
    total = (total or 0) + 1
    return total, b"%s:%d" % (value, total)


job = Job("{name}")
job.source(KafkaSource("{name}-in")).stateful_map(count, name="count").sink(KafkaSink("{name}-out"))
"""
RECORDS = 3_000


class Setting:
    """A job that counts by key, its topics, and the commands on them."""

    def __init__(self, broker: Broker, folder: Path, name: str, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self.servers = broker.bootstrap_servers
        self.folder = folder
        self.input, self.output = f"{name}-in", f"{name}-out"
        self.job_file = folder / "job.py"
        self.job_file.write_text(JOB.format(name=name))
        for topic in (self.input, self.output):
            create_topic(self.servers, topic, 2)

    def fill(self, topic: str, *records: Write) -> None:
        produce(self.servers, topic, records)

    def run(self, **environment: str) -> CommandResult:
        return twopc(
            *("run", str(self.job_file), "-b", self.servers, "--checkpoint-dir", str(self.folder / "checkpoints")),
            *("--parallelism", "2", "--checkpoint-interval", "150ms", "--host", "process", "--until-end", "-o", "json"),
            **environment,
        )

    def verify(self, *arguments: str, code: int) -> dict[str, Any]:
        done = self._verify("--map", str(self.job_file), "-b", self.servers, *arguments, "-o", "json")
        assert done.code == code, done.err + done.out
        told = json.loads(done.out)
        assert isinstance(told, dict)
        return told

    def refused(self, *arguments: str) -> str:
        done = self._verify("--map", str(self.job_file), "-b", self.servers, *arguments)
        assert (done.code, done.out) == (2, ""), done.out
        return done.err

    def copied(self, output: str, *arguments: str, source: str = "") -> CommandResult:
        """Hold a topic against another one that it should be a copy of."""
        return self._verify("--input", source or self.input, "--output", output, "-b", self.servers, *arguments)

    def _verify(self, *arguments: str) -> CommandResult:
        """As a process of its own would do it, without the time that one needs to start."""
        with pytest.raises(SystemExit) as ended:
            main(["verify", *arguments])
        written = self._capture.readouterr()
        return CommandResult(int(ended.value.code or 0), written.out, written.err)


@pytest.fixture
def setting(broker: Broker, tmp_path: Path, topic: Callable[[], str], capsys: pytest.CaptureFixture[str]) -> Setting:
    return Setting(broker, tmp_path, topic(), capsys)


def counts(told: dict[str, Any]) -> dict[str, int]:
    [topic] = told["topics"]
    return {kind: count for kind, count in topic["counts"].items() if count}


def test_a_job_that_was_killed_holds_its_promises_and_a_forged_record_is_named(setting: Setting) -> None:
    records = [Write(b"%d" % n, key=b"k%d" % (n % 7)) for n in range(RECORDS)]
    setting.fill(setting.input, *records)
    once = setting.folder / "once"
    ran = setting.run(**{VARIABLE: f"{CrashPoint.BEFORE_COMMIT.name},checkpoint=1,subtask=0,once={once}"})
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["attempts"] == 2
    told = setting.verify(code=0)
    [topic] = told["topics"]
    assert (told["records_in"], topic["matched"], topic["found"]) == (RECORDS, RECORDS, RECORDS)

    _aborted(setting.servers, setting.output, b"k0", b"aborted")
    assert setting.verify(code=0)["held"]
    told = setting.verify("--read-uncommitted", code=1)
    assert counts(told) == {"aborted": told["topics"][0]["found"] - RECORDS}
    assert told["transactions"]["aborted"] >= 1, "and one more where the job was killed with records in the next one"

    setting.fill(setting.output, Write(b"7:2", key=b"k0"))
    junit = setting.folder / "junit.xml"
    told = setting.verify("--junit", str(junit), code=1)
    assert counts(told) == {"duplicated": 1}
    assert told["topics"][0]["findings"][0]["found"] == "'7:2'"
    assert len(list(ElementTree.parse(junit).iter("failure"))) == 1


def test_what_is_lost_and_what_disagrees_is_told_with_the_value_that_was_expected(setting: Setting) -> None:
    setting.fill(setting.input, *(Write(b"%d" % n, key=b"k") for n in range(5)))
    setting.fill(setting.output, *(Write(value, key=b"k") for value in (b"0:1", b"1:2", b"3:1", b"4:5")))
    told = setting.verify(code=1)
    assert counts(told) == {"lost": 1, "disagrees": 1}
    lost, wrong = told["topics"][0]["findings"]
    assert {lost["expected"], wrong["expected"]} == {"'2:3'", "'3:4'"}


def test_a_running_job_is_judged_as_far_as_its_group_has_committed(setting: Setting) -> None:
    setting.fill(setting.input, *(Write(b"%d" % n, key=b"k%d" % (n % 7)) for n in range(100)))
    assert setting.run().code == 0
    setting.fill(setting.input, *(Write(b"%d" % n, key=b"k%d" % (n % 7)) for n in range(10)))
    told = setting.verify("--running", code=0)
    assert (told["topics"][0]["expected"], told["topics"][0]["pending"], told["unseen"]) == (100, 10, [])
    assert counts(setting.verify(code=1)) == {"lost": 10}


def test_partitions_that_nobody_reads_are_named_of_a_running_job(setting: Setting) -> None:
    setting.fill(setting.input, *(Write(b"%d" % n, key=b"k%d" % (n % 7)) for n in range(10)))
    assert setting.run().code == 0
    grow_topic(setting.servers, setting.input, 3)
    eventually(lambda: bool(setting.verify("--running", code=0)["unseen"]))
    [unseen] = setting.verify("--running", code=0)["unseen"]
    assert unseen == f"{setting.input}[2]: the job's group has no position there, so nothing there is read yet"


def test_a_transaction_whose_end_stands_beyond_an_open_one_is_known_as_committed(setting: Setting) -> None:
    setting.fill(setting.input, *(Write(b"%d" % n, key=b"k") for n in range(2)))
    first = _open(setting.servers, setting.output, b"k", b"0:1", "first")
    second = _open(setting.servers, setting.output, b"k", b"1:2", "second")
    first.commit_transaction(30)
    [topic] = setting.verify("--running", code=0)["topics"]
    assert (topic["found"], topic["matched"], topic["pending"]) == (1, 1, 1)
    second.abort_transaction(30)


def test_input_that_an_open_transaction_hides_is_named_as_not_judged(setting: Setting) -> None:
    setting.fill(setting.input, *(Write(b"%d" % n, key=b"k") for n in range(2)))
    producer = _open(setting.servers, setting.input, b"k", b"2")
    setting.fill(setting.input, Write(b"3", key=b"k"))
    [unseen] = setting.verify("--running", code=0)["unseen"]
    assert "hidden by the open transaction of" in unseen
    producer.abort_transaction(30)
    eventually(lambda: setting.verify("--running", code=0)["unseen"] == [])


def test_what_can_not_be_judged_is_said(setting: Setting) -> None:
    setting.fill(setting.input, *(Write(b"%d" % n, key=b"k") for n in range(10)))
    assert "there is no output topic 'nowhere'" in setting.refused("--output", "nowhere")
    assert "must be host:port" in setting.refused("-b", "nonsense")
    producer = _open(setting.servers, setting.output, b"k", b"0:1")
    assert "an open transaction hides" in setting.refused()
    producer.abort_transaction()
    _delete_before(setting.servers, setting.input, 3)
    assert "the beginning of the input is gone" in setting.refused()


def test_records_of_two_keys_that_changed_places_in_an_output_partition_are_reordered(setting: Setting) -> None:
    """Both are of one input partition, and each key has one record only."""
    copy, values = f"{setting.output}-copy", (b"a", b"b", b"c", b"d", b"e")
    create_topic(setting.servers, copy, 1)
    setting.fill(setting.input, *(Write(value, key=value, partition=0) for value in values))
    setting.fill(copy, *(Write(value, key=value, partition=0) for value in (b"a", b"c", b"b", b"d", b"e")))
    done = setting.copied(copy, "-o", "json")
    assert (done.code, counts(json.loads(done.out))) == (1, {"reordered": 1}), done.err


@pytest.mark.proof
def test_a_right_output_of_an_input_that_was_compacted_since_is_not_judged(setting: Setting) -> None:
    compacted = f"{setting.input}-compacted"
    compact(setting.servers, compacted, [Write(b"%d" % n, key=b"k%d" % (n % 3)) for n in range(9)])
    setting.fill(setting.output, *(Write(b"%d" % n, key=b"k%d" % (n % 3)) for n in range(9)))
    done = setting.copied(setting.output, "-o", "json", source=compacted)
    assert (done.code, done.out) == (2, ""), done.out
    assert f"the input was compacted: 6 offsets of {compacted}[0] hold no record any more" in done.err


@pytest.mark.proof
def test_an_output_that_was_compacted_is_not_judged(setting: Setting) -> None:
    compacted = f"{setting.output}-compacted"
    records = [Write(b"%d" % n, key=b"k%d" % (n % 3)) for n in range(9)]
    setting.fill(setting.input, *records)
    compact(setting.servers, compacted, records)
    done = setting.copied(compacted)
    assert done.code == 2, done.out
    assert f"the output was compacted: 6 offsets of {compacted}[0]" in done.err


def test_a_compacted_topic_from_which_nothing_was_taken_yet_is_judged(setting: Setting) -> None:
    compacted = f"{setting.input}-compacted"
    create_topic(setting.servers, compacted, 1, settings={"cleanup.policy": "compact"})
    _open(setting.servers, compacted, b"k", b"aborted").abort_transaction(30)
    records = [Write(b"%d" % n, key=b"k%d" % (n % 3)) for n in range(9)]
    for topic in (compacted, setting.output):
        setting.fill(topic, *records)
    assert setting.copied(setting.output, source=compacted).code == 0


def compact(servers: str, topic: str, records: list[Write]) -> None:
    """Fill a topic, and wait until the broker has compacted it: three keys are left of it, and one in a new segment."""
    settings = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.0",
        "max.compaction.lag.ms": "100",
    }
    create_topic(servers, topic, 1, settings=settings)
    produce(servers, topic, records)
    # What is written to last is never compacted: a record that comes when its time is over begins another segment.
    time.sleep(0.2)
    produce(servers, topic, [Write(b"last", key=b"last")])
    deadline = time.monotonic() + 240
    while len(read_topic(servers, topic)) > len(records):
        assert time.monotonic() < deadline, "the broker did not compact the topic"
        time.sleep(1)


def _open(servers: str, topic: str, key: bytes, value: bytes, name: str = "forged") -> Producer:
    """A producer with an open transaction that holds one record."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{topic}-{name}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value, key)
    producer.flush(30)
    return producer


def _aborted(servers: str, topic: str, key: bytes, value: bytes) -> None:
    _open(servers, topic, key, value).abort_transaction(30)


def _delete_before(servers: str, topic: str, offset: int) -> None:
    """Delete the first records of the partition that has any."""
    [partition] = {record.partition for record in read_topic(servers, topic)}
    admin = AdminClient({"bootstrap.servers": servers})
    [future] = admin.delete_records([TopicPartition(topic, partition, offset)]).values()
    future.result(30)


def test_a_load_is_written_at_a_rate_and_can_be_held_against_its_plan(broker: Broker, topic: Callable[[], str]) -> None:
    name, servers = topic(), broker.bootstrap_servers
    create_topic(servers, name, 2)
    plan = ("produce", "--topic", name, "-n", "500", "--keys", "7", "-b", servers, "-o", "json")
    produced = twopc(*plan, "--rate", "2000")
    assert produced.code == 0, produced.err
    assert json.loads(produced.out)["acknowledged"] == 500
    assert {read_load(record.value or b"").key for record in read_topic(servers, name)} == {
        b"key-%d" % number for number in range(7)
    }
    assert twopc(*plan, "--check").code == 0
    produce(servers, name, [Write(load_value(b"key-1", 0, 100), key=b"key-1")])
    checked = twopc(*plan, "--check")
    assert (checked.code, json.loads(checked.out)["counts"]["duplicated"]) == (1, 1)


def test_an_interrupted_load_says_how_far_it_went(broker: Broker, topic: Callable[[], str]) -> None:
    name, servers = topic(), broker.bootstrap_servers
    create_topic(servers, name)
    partition = Partition(name, 0)
    command = f"-m twopc produce --topic {name} -n 100000 --rate 500 -b {servers} -o json".split()
    deadline = time.monotonic() + 240
    with (
        # Who is started in the background is told to ignore SIGINT, and hands that on.
        subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process,
        ControlClient(servers, {}) as client,
    ):
        while not client.offsets({partition: LATEST})[partition]:
            assert time.monotonic() < deadline, "nothing was written"
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=240)
    told = json.loads(out)
    assert (process.returncode, told["interrupted"], told["failed"]) == (130, True, 0)
    assert told["acknowledged"] == len(read_topic(servers, name))


GRAPH = """
from twopc import Job, KafkaSink, KafkaSource

job = Job("{name}")
web = job.source(KafkaSource("{name}-web"), name="web")
app = job.source(KafkaSource("{name}-app"), name="app").filter(lambda value: value != b"test")
orders = web.merge(app)
orders.sink(KafkaSink("{name}-all"), name="all")
orders.filter(lambda value: len(value) > 3).sink(KafkaSink("{name}-large"), name="large")
"""


def test_a_job_of_two_sources_and_two_sinks_is_judged_topic_by_topic(setting: Setting) -> None:
    name = setting.input.removesuffix("-in")
    setting.job_file.write_text(GRAPH.format(name=name))
    for suffix in ("web", "app", "all", "large"):
        create_topic(setting.servers, f"{name}-{suffix}", 2)
    for suffix in ("web", "app"):
        setting.fill(
            f"{name}-{suffix}", *(Write(b"%s%d" % (suffix[:1].encode(), n), key=b"k%d" % (n % 7)) for n in range(500))
        )
    setting.fill(f"{name}-app", Write(b"test", key=b"k1"))
    ran = setting.run()
    assert ran.code == 0, ran.err
    told = setting.verify(code=0)
    assert (told["records_in"], told["left_out"]) == (1001, [])
    assert {each["topic"]: each["matched"] for each in told["topics"]} == {f"{name}-all": 1000, f"{name}-large": 800}
    assert setting.verify("--running", code=0)["held"]

    setting.fill(f"{name}-large", Write(b"w1", key=b"k1"))
    told = setting.verify(code=1)
    broken = {each["topic"]: each["counts"]["unexpected"] for each in told["topics"]}
    assert broken == {f"{name}-all": 0, f"{name}-large": 1}, "it has no business there, though it is right elsewhere"
    assert setting.verify("--output", f"{name}-all", code=0)["held"]


SKIPPING = """
from twopc import Job, Json, KafkaSink, KafkaSource, Skip


def doubled(number):
    return "x" * 2_000 if number == 8 else 2 * number


job = Job("{name}", on_error=Skip())
job.source(KafkaSource("{name}-in", value=Json())).map(doubled).sink(KafkaSink("{name}-small", value=Json()))
"""


def test_what_a_job_skips_is_counted_apart_and_no_loss(setting: Setting) -> None:
    name = setting.input.removesuffix("-in")
    setting.job_file.write_text(SKIPPING.format(name=name))
    create_topic(setting.servers, f"{name}-small", 2, settings={"max.message.bytes": "1000"})
    setting.fill(setting.input, *(Write(b"%d" % n) for n in range(20)), Write(b"?"), Write(b'{"no": "number"}'))
    ran = setting.run()
    assert ran.code == 0, ran.err
    wrong = [
        {"source": "source-1", "operator": operator, "skipped": 1, "dead_letters": 0}
        for operator in ("decoding the value", "map(doubled)", f"writing to topic {name}-small")
    ]
    assert sorted(json.loads(ran.out)["record_errors"], key=lambda each: each["operator"]) == wrong
    told = setting.verify(code=0)
    assert sorted(told["record_errors"], key=lambda each: each["operator"]) == wrong
    [judged] = told["topics"]
    assert (told["records_in"], judged["expected"], judged["matched"]) == (22, 19, 19)
