"""A Kafka sink and a sink with a global committer in one job, through a kill -9: nothing lost or doubled in either."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from table_sink import Manifest, read_table

from tests.jobs.slow_job import SlowJob
from twopc.faults.armed_faults import ArmedFault
from twopc.faults.points import CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

RECORDS = 10_000
"""More than are read before the third checkpoint, however slow a machine is at those: records are, until then, too."""

JOB = """
from table_sink import TableSink
from twopc import Job, Json, KafkaSink, KafkaSource

job = Job(name)
numbers = job.source(KafkaSource(name, value=Json())).map(slowly)
numbers.sink(KafkaSink(f"{name}-out", value=Json()))
numbers.sink(TableSink(f"{folder}/table"), name="table")
"""

OF_A_SUBTASK = [CrashPoint.AFTER_PRE_COMMIT, pytest.param(CrashPoint.AFTER_ACK, marks=pytest.mark.proof)]
"""Between the commits of both, and in the global commit, the crash cells are."""


class TwoSinks(SlowJob):
    """The job, its input, and where it writes."""

    def __init__(self, broker: Broker, name: str, folder: Path) -> None:
        super().__init__(broker.bootstrap_servers, name, folder, JOB, beside="table_sink.py")
        self.table = folder / "table"
        self._servers, self._name = broker.bootstrap_servers, name
        create_topic(self._servers, name, 2)
        create_topic(self._servers, f"{name}-out", 2)
        produce(self._servers, name, (Write(b"%d" % number, partition=number % 2) for number in range(RECORDS)))

    def check(self) -> None:
        """Every record is in both sinks once; the folder holds what the table names, and nothing else."""
        every = list(range(RECORDS))
        assert sorted(int(record.value or b"") for record in read_topic(self._servers, f"{self._name}-out")) == every
        assert sorted(read_table(self.table)) == every
        assert {path.name for path in self.table.glob("*.jsonl")} == set(Manifest.read(self.table).files)


@pytest.fixture
def job(broker: Broker, topic: Callable[[], str], tmp_path: Path) -> TwoSinks:
    return TwoSinks(broker, topic(), tmp_path)


@pytest.mark.parametrize("point", OF_A_SUBTASK, ids=lambda point: point.name.lower())
def test_both_sinks_have_every_record_once_although_a_subtask_was_killed(job: TwoSinks, point: CrashPoint) -> None:
    job.survive(ArmedFault(point, checkpoint=3, subtask=0))
    job.check()


def test_both_sinks_have_every_record_once_although_the_driver_was_killed(job: TwoSinks) -> None:
    # The coordinator runs in the driver's process.
    arm = ArmedFault(CrashPoint.COORDINATOR_AFTER_COMPLETION, checkpoint=3)
    killed = job.run(arm)
    assert killed.code == -9, killed.err
    finished = job.run(arm)
    assert finished.code == 0, finished.err
    job.check()


@pytest.mark.proof
def test_recoveries_that_die_in_their_global_commit_are_made_good_by_the_one_after_them(job: TwoSinks) -> None:
    fall = ArmedFault(CrashPoint.BEFORE_GLOBAL_COMMIT, checkpoint=3)
    again = [ArmedFault(CrashPoint.AFTER_GLOBAL_COMMIT, checkpoint=3), ArmedFault(CrashPoint.DRIVER_AFTER_SETTLE)]
    assert [job.run(fall).code, *(job.run(fall, arm).code for arm in again)] == [-9, -9, -9]
    finished = job.run(fall)
    assert finished.code == 0, finished.err
    job.check()
