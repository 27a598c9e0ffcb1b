"""Queries by `format("twopc-kafka")`, of which tasks, what commits, and the driver are killed with -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kafka.kit import eventually
from tests.spark.streaming.numbers import counts_after_each_batch, each_number, write_files, written
from twopc.faults.armed_faults import ArmedFault, ProcessAction, armed
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_800)]

FILES, FILES_A_TABLE = 12, 4
START_SECONDS = 400.0

KILLED = (
    ArmedFault(CrashPoint.COORDINATOR_AFTER_COMPLETION, checkpoint=1),
    ArmedFault(CrashPoint.COORDINATOR_AFTER_ACKS, checkpoint=3),
    ArmedFault(CrashPoint.AFTER_END_TXN, checkpoint=3),
    ArmedFault(CrashPoint.AFTER_PRE_COMMIT, checkpoint=4),
)
"""What commits: behind the decision about a batch of the table; before one about rows, and between its commits.

And a task behind its pre-commit. The table has no third batch.
"""

HELD = ArmedFault(CrashPoint.AFTER_END_TXN, ProcessAction.HOLD, checkpoint=4, name="-driver")
"""Between two commits, until the driver is killed."""

KILLED_AGAIN = ArmedFault(CrashPoint.AFTER_COMMIT, checkpoint=4)
"""What commits, behind its commits and before Spark's own log."""


@dataclass
class Program:
    """The two queries, and what they have written."""

    servers: str
    rows: str
    table: str
    work: Path
    environment: dict[str, str]

    def start(self, *faults: ArmedFault) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.spark.streaming.format_query", self.servers, self.rows, self.table]
        variables = os.environ | self.environment | {VARIABLE: armed(faults, self.work)}
        return subprocess.Popen([*command, str(self.work)], env=variables, start_new_session=True)


@pytest.fixture
def program(broker: Broker, light_jvms: dict[str, str], tmp_path: Path, topic: Callable[[], str]) -> Program:
    made = Program(broker.bootstrap_servers, topic(), topic(), tmp_path, light_jvms)
    for name in (made.rows, made.table):
        create_topic(broker.bootstrap_servers, name, 2)
    write_files(tmp_path / "in", FILES)
    return made


@pytest.mark.proof
def test_queries_killed_at_each_place_of_a_batch_write_every_row_once(program: Program) -> None:
    first = program.start(*KILLED, HELD)
    try:
        eventually(lambda: HELD.has_happened(program.work), START_SECONDS)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    with suppress(ProcessLookupError):
        os.kill(int(HELD.once(program.work).read_text()), signal.SIGKILL)
    assert program.start(KILLED_AGAIN).wait(START_SECONDS) == 0
    assert all(each.has_happened(program.work) for each in (*KILLED, KILLED_AGAIN))
    assert written(program.servers, program.rows) == each_number(FILES)
    assert written(program.servers, program.table) == counts_after_each_batch(FILES, FILES_A_TABLE)
