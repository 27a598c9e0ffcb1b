"""Spark's own streaming queries with kill -9 at each place of a batch; the output is judged row by row."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.spark.streaming.numbers import counts_after_each_batch, each_number, write_files, written
from twopc.faults.armed_faults import ArmedFault, ProcessAction, armed
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_800)]

FILES = 12
START_SECONDS = 400


@dataclass
class Query:
    """One query, its input and what it keeps."""

    servers: str
    topic: str
    work: Path
    environment: dict[str, str]
    kind: str = "rows"
    files_a_batch: int = 2

    def start(self, *faults: ArmedFault) -> int:
        """Run it until it ends, or is killed; return its exit code."""
        command = [sys.executable, "-m", "tests.spark.streaming.query", self.servers, self.topic, str(self.work)]
        return subprocess.run(
            [*command, str(self.files_a_batch), self.kind],
            env=os.environ | self.environment | {VARIABLE: armed(faults, self.work)},
            timeout=START_SECONDS,
            check=False,
        ).returncode

    def killed_at(self, point: CrashPoint, batch: int) -> bool:
        """Run it until it is killed there; say whether it was."""
        fault = ArmedFault(point, ProcessAction.KILL, checkpoint=batch, name=f"-{batch}")
        code = self.start(fault)
        return code == -signal.SIGKILL and fault.has_happened(self.work)


@pytest.fixture
def query(broker: Broker, light_jvms: dict[str, str], tmp_path: Path, topic: Callable[[], str]) -> Query:
    made = Query(broker.bootstrap_servers, topic(), tmp_path, light_jvms)
    create_topic(broker.bootstrap_servers, made.topic, 2)
    write_files(tmp_path / "in", FILES)
    return made


def test_a_query_killed_at_each_place_of_a_batch_writes_every_row_once(query: Query) -> None:
    assert query.killed_at(CrashPoint.COORDINATOR_AFTER_ACKS, 1), "before the decision"
    assert query.killed_at(CrashPoint.COORDINATOR_AFTER_COMPLETION, 1), "after the decision, before EndTxn"
    assert query.killed_at(CrashPoint.AFTER_END_TXN, 2), "between two EndTxn"
    assert query.killed_at(CrashPoint.AFTER_COMMIT, 3), "after all EndTxn, before Spark's own log"
    retried = ArmedFault(CrashPoint.AFTER_PRE_COMMIT, checkpoint=4)
    assert query.start(retried) == 0
    assert retried.has_happened(query.work), "a task was killed behind its pre-commit"
    assert written(query.servers, query.topic) == each_number(FILES)


@pytest.mark.proof
def test_the_state_of_a_query_killed_between_two_commits_fits_what_it_has_written(query: Query) -> None:
    query.kind, query.files_a_batch = "counts", 4
    assert query.killed_at(CrashPoint.AFTER_END_TXN, 1)
    assert query.start() == 0
    assert written(query.servers, query.topic) == counts_after_each_batch(FILES, query.files_a_batch)
