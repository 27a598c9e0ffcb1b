"""A job whose checkpoints are on HDFS: through kill -9 of subtasks, driver and both servers; and the tools on it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.counted_elsewhere import KEYS, Played
from twopc.faults.armed_faults import ArmedFault
from twopc.faults.points import CrashPoint
from twopc.inspect import open_checkpoint
from twopc.storage.hdfs import Hdfs
from twopc.storage.open import open_store
from twopc.testing.broker import Broker
from twopc.testing.local_hdfs import LocalHdfs

pytestmark = [pytest.mark.broker, pytest.mark.proof, pytest.mark.xdist_group("hdfs")]


@pytest.fixture
def played(broker: Broker, hdfs_server: LocalHdfs, topic: Callable[[], str], tmp_path: Path) -> Played:
    name = topic()
    played = Played(broker, hdfs_server.url(f"jobs/{name}"), name, tmp_path)
    played.give()
    return played


def hidden(server: LocalHdfs, folder: str) -> list[str]:
    """What stands below a folder under names that are nobody's."""
    hdfs = Hdfs(server.url("").removeprefix("hdfs://").rstrip("/"))
    found = []
    for each in hdfs.listed(folder):
        path = f"{folder}/{each.name}"
        found += [path] if each.name.startswith(".") else hidden(server, path) if each.is_folder else []
    return found


def test_a_job_is_exact_through_deaths_of_all_that_stores_and_every_tool_reads_what_it_left(
    played: Played, hdfs_server: LocalHdfs, tmp_path: Path
) -> None:
    died = played.run(
        ArmedFault(CrashPoint.BEFORE_SEAL, checkpoint=2),
        ArmedFault(CrashPoint.COORDINATOR_METADATA_UNNAMED, checkpoint=3),
    )
    assert died.code == -9
    assert hidden(hdfs_server, f"/jobs/{played.name}")
    played.give()
    striking = threading.Thread(target=kill_both_servers, args=(hdfs_server, played.name, tmp_path / "struck"))
    striking.start()
    finished = played.run(ArmedFault(CrashPoint.IN_RESTORE), struck=tmp_path / "struck")
    striking.join(120)
    assert finished.code == 0, finished.err
    assert hidden(hdfs_server, f"/jobs/{played.name}") == []
    played.require_exact()
    require_tools(played, hdfs_server)


def kill_both_servers(server: LocalHdfs, name: str, struck: Path) -> None:
    """Do so once the run that follows has stored something, and start them again."""
    job = open_store(server.url(f"jobs/{name}")).within(name)
    before = set(job.names("files/"))
    while not set(job.names("files/")) - before:
        time.sleep(0.1)
    server.kill()
    time.sleep(1)
    server.start()
    struck.touch()


def require_tools(played: Played, server: LocalHdfs) -> None:
    """List, inspect, drill; and find a byte that is another."""
    listed = played.ask("checkpoints", "list")
    with open_checkpoint("latest", checkpoint_dir=server.url(f"jobs/{played.name}"), job=played.name) as checkpoint:
        assert checkpoint.checkpoint_id == listed[-1]["checkpoint_id"]
        assert len(list(checkpoint.state("seen").items())) == KEYS
    # Behind the latest one nothing was left to replay.
    drilled = played.drill(str(listed[0]["checkpoint_id"]))
    assert drilled.code == 0, drilled.out + drilled.err
    job = open_store(server.url(f"jobs/{played.name}")).within(played.name)
    damaged = next(name for name in job.names("files/") if name.endswith(".sst"))
    job.put([(damaged, b"?" + job.get(damaged)[1:])])
    found = played.tool("checkpoints", "verify")
    assert (found.code, f"{damaged} is damaged" in found.out + found.err) == (5, True)
