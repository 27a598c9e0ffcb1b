"""A query of Spark's from Kafka to Kafka with kill -9, transactions in its input, and a partition that is new.

And drivers of it that sleep, while others run it to its end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.kafka.kit import eventually, grow_topic
from tests.spark.streaming.way import Way
from twopc.faults.armed_faults import ArmedFault, ProcessAction, armed
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.transactions.lingering_transactions import ongoing_ids
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic, read_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_800)]

A_TRANSACTION, OFFSETS_A_BATCH = 100, 350
START_SECONDS = 400.0


@dataclass
class Query:
    """One query, its topics and what it keeps; every process that runs it writes what it says into a file."""

    servers: str
    source: str
    topic: str
    work: Path
    environment: dict[str, str]
    begins: str = "latest"
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, way: Way, *faults: ArmedFault) -> subprocess.Popen[bytes]:
        """Have a process begin to read what is there."""
        command = [sys.executable, "-m", "tests.spark.streaming.kafka_query", self.servers, self.source, self.topic]
        variables = os.environ | self.environment | {VARIABLE: armed(faults, self.work)}
        with self.said(len(self.started)).open("wb") as said:
            made = subprocess.Popen(
                [*command, str(self.work), self.begins, str(OFFSETS_A_BATCH), way.value],
                env=variables,
                start_new_session=True,
                stderr=said,
            )
        self.started.append(made)
        return made

    def held_at(self, point: CrashPoint, batch: int, way: Way) -> Held:
        """Have a process run it until it is held there."""
        fault = ArmedFault(point, ProcessAction.HOLD, checkpoint=batch, name=f"-{batch}")
        held = Held(self.start(way, fault), fault, self.work)
        eventually(lambda: fault.has_happened(self.work) or held.process.poll() is not None, START_SECONDS)
        assert held.process.poll() is None
        return held

    def said(self, number: int) -> Path:
        return self.work / f"process-{number}.err"

    def load(self, numbers: range, partitions: int) -> None:
        """Write numbers in transactions, every other of which is written before too, and aborted."""
        producer = Producer({"bootstrap.servers": self.servers, "transactional.id": f"{self.source}-{numbers.start}"})
        producer.init_transactions(60)
        for first in range(numbers.start, numbers.stop, A_TRANSACTION):
            for commits in [False, True] if first // A_TRANSACTION % 2 else [True]:
                producer.begin_transaction()
                for number in range(first, first + A_TRANSACTION):
                    producer.produce(self.source, b"%d" % number, partition=number % partitions)
                producer.flush(60)
                producer.commit_transaction(60) if commits else producer.abort_transaction(60)

    def run_into_time_outs(self) -> int:
        """Abort what the query has open, as brokers do when it has been for too long; return how much that was."""
        with ControlClient(self.servers, {}) as client:
            opened = ongoing_ids(client, self.topic)
            for name in opened:
                found = client.describe_transaction(name)
                assert found is not None
                client.end_transaction(name, found.described.producer_id, found.described.producer_epoch, commit=False)
        return len(opened)

    def written(self) -> list[int]:
        return [int(each.value or b"") for each in read_topic(self.servers, self.topic)]


@dataclass
class Held:
    """A driver that is held; by the format it is the process beside it that commits."""

    process: subprocess.Popen[bytes]
    fault: ArmedFault
    work: Path

    def kill(self) -> None:
        """End all of it with -9."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(int(self.fault.once(self.work).read_text()), signal.SIGKILL)
        self.process.wait()

    def wake(self) -> int:
        """Let it go on; return its exit code."""
        self.fault.release(self.work).touch()
        return self.process.wait(START_SECONDS)


@pytest.fixture
def query(broker: Broker, light_jvms: dict[str, str], tmp_path: Path, topic: Callable[[], str]) -> Iterator[Query]:
    made = Query(broker.bootstrap_servers, topic(), topic(), tmp_path, light_jvms)
    create_topic(made.servers, made.source, 2)
    create_topic(made.servers, made.topic, 1)
    yield made
    for process in made.started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.proof
@pytest.mark.parametrize("way", Way, ids=lambda way: way.value)
def test_every_record_is_there_once_and_in_order_although_the_query_was_killed(query: Query, way: Way) -> None:
    earlier, old, new = range(500), range(500, 1_500), range(1_500, 2_500)
    query.load(earlier, 2)
    query.held_at(CrashPoint.COORDINATOR_AFTER_ACKS, 0, way).kill()  # it has noted that it begins at the end
    query.load(old, 2)
    query.held_at(CrashPoint.AFTER_END_TXN, 2, way).kill()  # between two EndTxn
    query.held_at(CrashPoint.COORDINATOR_AFTER_COMPLETION, 4, way).kill()  # decided, and nothing of it committed
    assert query.run_into_time_outs() >= 2
    grow_topic(query.servers, query.source, 3)
    query.load(new, 3)
    assert query.start(way).wait(START_SECONDS) == 0
    written = query.written()
    assert Counter(written) == Counter([*old, *new])
    for numbers, partitions in ((old, 2), (new, 3)):
        for partition in range(partitions):
            of_one = [each for each in written if each in numbers and each % partitions == partition]
            assert of_one == sorted(of_one), "records of a partition stay in order"


@pytest.mark.proof
def test_drivers_that_sleep_while_another_one_runs_the_query_to_its_end_write_nothing_when_they_wake(
    query: Query,
) -> None:
    query.begins = "earliest"
    query.load(range(1_500), 2)
    undecided = query.held_at(CrashPoint.COORDINATOR_AFTER_ACKS, 1, Way.FORMAT)
    decided = query.held_at(CrashPoint.COORDINATOR_AFTER_COMPLETION, 2, Way.FUNCTION)
    assert query.start(Way.FORMAT).wait(START_SECONDS) == 0
    assert undecided.wake() != 0
    assert "another driver of this query has decided batch 1" in query.said(0).read_text()
    assert decided.wake() != 0
    assert "CONCURRENT_STREAM_LOG_UPDATE" in query.said(1).read_text()
    assert Counter(query.written()) == Counter(range(1_500))
