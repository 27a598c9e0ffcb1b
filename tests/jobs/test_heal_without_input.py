"""Lost output whose input retention has deleted: it is refused and named at every start, until a person gives it up."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.jobs.cli import CommandResult, twopc
from tests.jobs.test_accepted_loss import lose_the_last_checkpoint
from tests.kafka.kit import values_of
from twopc.errors import TransactionLost
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce

pytestmark = pytest.mark.broker

JOB = """
from twopc import Job, KafkaSink, KafkaSource


def count(total, value):
    return (total or 0) + 1, value + b"-%d" % ((total or 0) + 1)


job = Job("{name}")
job.source(KafkaSource("{name}-in")).stateful_map(count, name="count").sink(KafkaSink("{name}-out"))
"""


class CountingJob:
    """Has written 5 records, and lost the output of the 5 after them, which its latest checkpoint has counted."""

    def __init__(self, broker: Broker, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._servers = broker.bootstrap_servers
        self.name = name
        self._file, self._checkpoints = folder / "job.py", folder / "checkpoints"
        self._file.write_text(JOB.format(name=name))
        for suffix in ("in", "out"):
            create_topic(self._servers, f"{name}-{suffix}")
        self.produce(b"written")
        assert self.start().code == 0
        self.produce(b"lost")
        lose_the_last_checkpoint(broker, self._file, self._checkpoints, monkeypatch)
        self.produce(b"new")

    def produce(self, value: bytes) -> None:
        produce(self._servers, f"{self.name}-in", [Write(value, key=b"k")] * 5)

    def start(self, *more: str, **environment: str) -> CommandResult:
        return twopc(
            *("run", str(self._file), "--bootstrap-servers", self._servers, "--checkpoint-dir", str(self._checkpoints)),
            *("--host", "process", "--until-end", *more),
            **environment,
        )

    def delete_input_before(self, offset: int) -> None:
        admin = AdminClient({"bootstrap.servers": self._servers})
        for done in admin.delete_records([TopicPartition(f"{self.name}-in", 0, offset)]).values():
            done.result(60)

    def written(self) -> list[bytes | None]:
        return values_of(self._servers, f"{self.name}-out")


@pytest.fixture
def job(broker: Broker, topic: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CountingJob:
    return CountingJob(broker, topic(), tmp_path, monkeypatch)


WRITTEN = [b"written-%d" % number for number in range(1, 6)]
NEW = [b"new-%d" % number for number in range(11, 16)]


def refused_twice_then_accepted(job: CountingJob) -> None:
    for _ in range(2):
        refused = job.start()
        assert refused.code == TransactionLost.exit_code, refused.err
        gone = f"{job.name}-in[0] from offset 5 on (deleted by retention: the first record is at 8 now)"
        assert gone in refused.err, refused.err
        assert f"up to {job.name}-in[0]@10" in refused.err
        assert "written again:" not in refused.err
        assert "--from" not in refused.err
    assert job.written() == WRITTEN
    [names] = set(re.findall(r"--accept-loss (\S+)\.\s", refused.err))
    assert job.start("--accept-loss", "another").code == TransactionLost.exit_code
    accepted = job.start("--accept-loss", names)
    assert accepted.code == 0, accepted.err
    assert job.written() == [*WRITTEN, *NEW], "the state is that of the latest checkpoint"
    assert job.start().code == 0


@pytest.mark.proof
def test_a_loss_whose_input_is_gone_is_named_at_every_start_and_accepted_with_all_state(job: CountingJob) -> None:
    job.delete_input_before(8)
    refused_twice_then_accepted(job)


@pytest.mark.proof
def test_a_loss_whose_input_went_after_it_was_to_be_written_again_is_named_at_every_start_too(
    job: CountingJob, tmp_path: Path
) -> None:
    died = job.start(**{VARIABLE: f"{CrashPoint.DRIVER_AFTER_ABORT_LINGERING.name},once={tmp_path / 'once'},kill"})
    assert died.code == -9
    assert "is written again: subtask 0" in died.err
    job.delete_input_before(8)
    refused_twice_then_accepted(job)


@pytest.mark.proof
def test_a_loss_whose_input_is_there_is_written_again(job: CountingJob) -> None:
    job.delete_input_before(5)
    assert job.start().code == 0
    assert job.written() == [*WRITTEN, *(b"lost-%d" % number for number in range(6, 11)), *NEW]
