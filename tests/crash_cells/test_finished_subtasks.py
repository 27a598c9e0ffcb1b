"""One subtask is at the end of its input while the other reads on: checkpoints go on, and so does a restart from one.

Several checkpoints may be in flight here.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash_cells.rig import Rig
from twopc.checkpoints.catalog import CheckpointEntry, read_job
from twopc.errors import ConfigurationError
from twopc.storage.local import LocalStore
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.drill

FEW, MANY = 20, 6_000
"""The second is not read to its end before some checkpoints have completed, however slow those are."""

SETTINGS = {"checkpoint_max_concurrent": "3", "checkpoints_retained": "100"}


@pytest.fixture(scope="module")
def uneven_input(broker: LocalBroker) -> str:
    """A partition with few records and one with many."""
    name = f"uneven-{uuid.uuid4().hex[:6]}"
    create_topic(broker.bootstrap_servers, name, 2)
    produce(broker.bootstrap_servers, name, (Write(b"%d" % n, key=b"few", partition=0) for n in range(FEW)))
    produce(broker.bootstrap_servers, name, (Write(b"%d" % n, key=b"many", partition=1) for n in range(MANY)))
    return name


@pytest.fixture
def rig(broker: LocalBroker, uneven_input: str, tmp_path: Path, topic: Callable[[], str]) -> Rig:
    made = Rig(broker.bootstrap_servers, tmp_path, topic(), uneven_input, settings=dict(SETTINGS))
    made.create_output()
    return made


def mixed(rig: Rig) -> list[CheckpointEntry]:
    """The completed checkpoints in which one subtask was at its end and the other was not."""
    try:
        completed = read_job(LocalStore(rig.checkpoint_dir), rig.job).completed
    except ConfigurationError:
        return []
    found = [(entry, entry.metadata) for entry in completed]
    return [
        entry
        for entry, metadata in found
        if metadata is not None and {snapshot.finished for snapshot in metadata.snapshots} == {True, False}
    ]


def written(rig: Rig) -> dict[bytes | None, list[bytes | None]]:
    found: dict[bytes | None, list[bytes | None]] = defaultdict(list)
    for record in read_topic(rig.bootstrap_servers, rig.output):
        found[record.key].append(record.value)
    return dict(found)


def run_until_mixed(rig: Rig, count: int) -> None:
    """Kill the driver when so many checkpoints have completed while one subtask was at its end."""
    with rig.run() as first:
        rig.await_true(lambda: len(mixed(rig)) >= count, "too few checkpoints completed with one subtask at its end")
        first.kill()


def test_checkpoints_complete_while_some_subtasks_are_at_their_end_and_a_restart_from_one_is_exact(
    rig: Rig,
) -> None:
    run_until_mixed(rig, 3)
    with rig.run() as again:
        again.finish()
    assert written(rig) == {
        b"few": [b"%d:%d" % (number, number + 1) for number in range(FEW)],
        b"many": [b"%d:%d" % (number, number + 1) for number in range(MANY)],
    }


@pytest.mark.proof
def test_another_parallelism_goes_on_from_such_a_checkpoint(rig: Rig) -> None:
    run_until_mixed(rig, 1)
    with rig.run(parallelism="3") as again:
        again.finish()
    newest = read_job(LocalStore(rig.checkpoint_dir), rig.job).completed[-1].metadata
    assert newest is not None
    assert [snapshot.finished for snapshot in newest.snapshots] == [True, True, True]
    assert len(written(rig)[b"few"]) == FEW
    assert written(rig)[b"many"] == [b"%d:%d" % (number, number + 1) for number in range(MANY)]
