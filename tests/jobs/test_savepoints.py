"""A job goes on from a savepoint that was carried elsewhere: state, positions and output agree, on a real broker."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.jobs.cli import twopc
from twopc.checkpoints.catalog import read_job
from twopc.checkpoints.files import examine
from twopc.checkpoints.times import times_of
from twopc.cli.coordinator_options import connect
from twopc.driver.discovery import find
from twopc.errors import ConfigurationError, Unavailable
from twopc.kafka.positions.partition_position import offsets_of
from twopc.protocol.checkpoints import CheckpointKind
from twopc.storage.local import LocalStore
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, delete_topic, produce, read_topic

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.broker


@pytest.fixture
def servers(broker: Broker) -> Iterator[str]:
    """A broker with empty topics."""
    for topic in ("in", "out"):
        create_topic(broker.bootstrap_servers, topic, 2)
    yield broker.bootstrap_servers
    for topic in ("in", "out"):
        delete_topic(broker.bootstrap_servers, topic)


def fill(servers: str) -> None:
    produce(servers, "in", [Write(b"x", key=b"k%d" % (number % 7)) for number in range(700)])


def counted(servers: str) -> dict[bytes | None, list[int]]:
    counts: dict[bytes | None, list[int]] = defaultdict(list)
    for record in read_topic(servers, "out"):
        counts[record.key].append(int(record.value or b"0"))
    return counts


def run_of(servers: str, checkpoints: Path, *more: str) -> tuple[str, ...]:
    return (
        *("run", str(EXAMPLES / "count_by_key.py"), "--bootstrap-servers", servers, "--host", "process"),
        *("--parallelism", "2", "--checkpoint-dir", str(checkpoints), *more),
    )


def test_a_job_goes_on_from_an_archive_after_its_checkpoint_folder_was_deleted(servers: str, tmp_path: Path) -> None:
    first, second, archive = tmp_path / "first", tmp_path / "second", str(tmp_path / "copy.tar")
    fill(servers)
    for command in (
        run_of(servers, first, "--until-end"),
        ("checkpoints", "copy", "latest", archive, "--checkpoint-dir", str(first)),
    ):
        done = twopc(*command)
        assert done.code == 0, done.err
    shutil.rmtree(first)
    fill(servers)
    done = twopc(*run_of(servers, second, "--until-end", "--from", archive))
    assert done.code == 0, done.err
    assert counted(servers) == {b"k%d" % key: list(range(1, 201)) for key in range(7)}
    assert examine(LocalStore(second), "count-by-key").findings == []


def test_a_job_that_is_drained_has_read_all_that_there_was_and_ends_with_a_savepoint_though_a_worker_is_killed(
    servers: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "twopc", *run_of(servers, tmp_path, "--checkpoint-interval", "10m")]
    struck = tmp_path / "struck"
    at_the_last_trigger = os.environ | {"TWOPC_CRASH_POINT": f"BEFORE_TRIGGER,subtask=0,once={struck}"}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stderr=quiet, stdout=quiet, env=at_the_last_trigger) as running:
        try:
            fill(servers)
            await_attached(tmp_path, "count-by-key")
            fill(servers)
            stopped = twopc(
                *("stop", "count-by-key", "--drain", "--savepoint", "--label", "done", "-o", "json"),
                *("--checkpoint-dir", str(tmp_path)),
            )
            assert stopped.code == 0, stopped.err
            assert running.wait(timeout=240) == 0
        finally:
            running.kill()
    assert struck.exists()
    assert counted(servers) == {b"k%d" % key: list(range(1, 201)) for key in range(7)}
    newest = read_job(LocalStore(tmp_path), "count-by-key").completed[-1]
    assert (newest.completed.record.kind, newest.label) == (CheckpointKind.FINAL_SAVEPOINT, "done")
    assert newest.metadata is not None
    assert sum(offsets_of(newest.metadata.positions).values()) >= 1_400
    times = times_of(newest.metadata, newest.completed)
    assert times.completed_ms is not None
    assert times.confirmed_ms is not None
    assert times.triggered_ms <= times.acknowledged_ms <= times.completed_ms <= times.confirmed_ms
    assert all(0 < each.pre_commit_ms <= each.pause_ms for each in times.subtasks.values())
    assert all(0 <= each.write_ms <= each.store_ms for each in times.subtasks.values())
    assert len(times.subtasks) == 2


def await_attached(checkpoints: Path, job: str) -> None:
    """Return when all subtasks of a job run."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        with suppress(ConfigurationError, Unavailable), connect(find(LocalStore(checkpoints), job)) as admin:
            subtasks = admin.subtasks(job)
            if subtasks and all(each.attached for each in subtasks):
                return
        time.sleep(0.1)
    raise AssertionError("the job does not run")
