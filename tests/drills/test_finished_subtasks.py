"""One subtask is at the end of its input while the other reads on: checkpoints go on, and so does a restart from one.

Several checkpoints may be in flight here.
"""

from __future__ import annotations

import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.drills.harness import Drill
from twopc.checkpoints import CheckpointEntry, read_job
from twopc.errors import ConfigurationError
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

FEW, MANY = 20, 3_000
SETTINGS = {"TWOPC_CHECKPOINT_MAX_CONCURRENT": "3", "TWOPC_CHECKPOINTS_RETAINED": "100"}


@dataclass
class Uneven(Drill):
    """The drill's job, on a partition with few records and one with many."""

    def load(self) -> None:
        for topic in (self.input, self.output):
            create_topic(self.bootstrap_servers, topic, 2)
        produce(self.bootstrap_servers, self.input, (Write(b"%d" % n, key=b"few", partition=0) for n in range(FEW)))
        produce(self.bootstrap_servers, self.input, (Write(b"%d" % n, key=b"many", partition=1) for n in range(MANY)))

    def mixed(self) -> list[CheckpointEntry]:
        """The completed checkpoints in which one subtask was at its end and the other was not."""
        try:
            completed = read_job(self.checkpoint_dir, self.job).completed
        except ConfigurationError:
            return []
        found = [(entry, entry.metadata) for entry in completed]
        return [
            entry
            for entry, metadata in found
            if metadata is not None and {snapshot.finished for snapshot in metadata.snapshots} == {True, False}
        ]

    def written(self) -> dict[bytes | None, list[bytes | None]]:
        found: dict[bytes | None, list[bytes | None]] = defaultdict(list)
        for record in read_topic(self.bootstrap_servers, self.output):
            found[record.key].append(record.value)
        return dict(found)


@pytest.fixture
def drill(broker: Broker, tmp_path: Path, topic: Callable[[], str]) -> Uneven:
    made = Uneven(broker.bootstrap_servers, tmp_path, topic(), environment=dict(SETTINGS))
    made.load()
    return made


def wait_for_mixed(drill: Uneven, job: subprocess.Popen[bytes], count: int) -> None:
    deadline = time.monotonic() + 60
    while len(drill.mixed()) < count:
        assert job.poll() is None, "the job ended first"
        assert time.monotonic() < deadline, "no checkpoint completed while one subtask was at its end"
        time.sleep(0.05)


def test_checkpoints_complete_while_some_subtasks_are_at_their_end_and_a_restart_from_one_is_exact(
    drill: Uneven,
) -> None:
    first = drill.start()
    wait_for_mixed(drill, first, 3)
    first.kill()
    first.communicate()
    drill.finish(drill.start())
    assert drill.written() == {
        b"few": [b"%d:%d" % (number, number + 1) for number in range(FEW)],
        b"many": [b"%d:%d" % (number, number + 1) for number in range(MANY)],
    }


def test_another_parallelism_goes_on_from_such_a_checkpoint(drill: Uneven) -> None:
    first = drill.start()
    wait_for_mixed(drill, first, 1)
    first.kill()
    first.communicate()
    drill.parallelism = 3
    drill.finish(drill.start())
    newest = read_job(drill.checkpoint_dir, drill.job).completed[-1].metadata
    assert newest is not None
    assert [snapshot.finished for snapshot in newest.snapshots] == [True, True, True]
    assert len(drill.written()[b"few"]) == FEW
    assert drill.written()[b"many"] == [b"%d:%d" % (number, number + 1) for number in range(MANY)]
