"""Workers that don't share the coordinator's checkpoint folder complete no checkpoint, and show no output."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.jobs.cli import TIMEOUT_SECONDS, CommandResult
from twopc.testing.broker import Broker
from twopc.testing.topics import Write, create_topic, produce, read_topic

pytestmark = pytest.mark.broker

JOB = """
import os
from pathlib import Path
from twopc import Job, KafkaSink, KafkaSource

link = Path(os.environ.get("LINK_TO_REPLACE", "nowhere"))

def count(total, value):
    if link.is_symlink():
        link.unlink()
        link.mkdir()
    return (total or 0) + 1, value

job = Job("counting")
job.source(KafkaSource({source!r})).stateful_map(count, name="count").sink(KafkaSink({target!r}))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The coordinator's checkpoint folder."""
    made = tmp_path / "coordinators"
    made.mkdir()
    return made


@pytest.fixture
def coordinator(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "twopc", "coordinator", "start", "--checkpoint-dir", str(folder), "-o", "json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield str(json.loads(process.stdout.readline())["address"])
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


class Stage:
    """A job of 100 records and 10 keys, whose state always goes into files."""

    def __init__(self, broker: Broker, coordinator: str, folder: Path, source: str, target: str) -> None:
        self._servers = broker.bootstrap_servers
        self._coordinator = coordinator
        self._target = target
        self._file = folder / "job.py"
        self._file.write_text(JOB.format(source=source, target=target))
        for each in (source, target):
            create_topic(self._servers, each)
        produce(self._servers, source, [Write(b"x", key=b"k%d" % (number % 10)) for number in range(100)])

    def run(self, checkpoints: Path, *within: str, **environment: str) -> CommandResult:
        where = ("-b", self._servers, "--checkpoint-dir", str(checkpoints), "--coordinator", self._coordinator)
        how = ("--host", "process", "--until-end", "--restart-strategy", "none", "--checkpoint-tolerable-failures", "0")
        done = subprocess.run(
            [*within, sys.executable, "-m", "twopc", "run", str(self._file), *where, *how],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            env=os.environ | {"TWOPC_CHECKPOINT_INLINE_BYTES": "0"} | environment,
            check=False,
        )
        return CommandResult(done.returncode, done.stdout, done.stderr)

    def visible(self) -> int:
        return len(read_topic(self._servers, self._target))


@pytest.fixture
def stage(broker: Broker, coordinator: str, tmp_path: Path, topic: Callable[[], str]) -> Stage:
    return Stage(broker, coordinator, tmp_path, topic(), topic())


@pytest.mark.proof
def test_a_worker_without_the_jobs_folder_makes_none_and_the_run_ends_naming_host_and_path(
    stage: Stage, folder: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    refused = stage.run(elsewhere)
    assert refused.code == 1, refused.err
    assert f"{socket.gethostname()}:{elsewhere / 'counting'} is not there" in refused.err
    assert "--checkpoint-dir" in refused.err
    assert not (elsewhere / "counting").exists()
    assert stage.visible() == 0

    assert stage.run(folder).code == 0
    assert stage.visible() == 100


@pytest.mark.proof
def test_a_worker_that_stores_beside_the_coordinators_folder_completes_nothing(
    stage: Stage, folder: Path, tmp_path: Path
) -> None:
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    link = mounted / "counting"
    link.symlink_to(folder / "counting")
    declined = stage.run(mounted, LINK_TO_REPLACE=str(link))
    assert list(link.glob("chk-*/subtask-0.json")), "the worker has not stored anything beside it"
    assert declined.code == 1, declined.err
    assert f"subtask 0 on {socket.gethostname()} stored its snapshot where the coordinator does not see it" in (
        declined.err
    )
    assert stage.visible() == 0

    assert stage.run(folder).code == 0
    assert stage.visible() == 100


def may_mount() -> bool:
    unshare = shutil.which("unshare")
    return (
        unshare is not None and not subprocess.run([unshare, "-m", "true"], capture_output=True, check=False).returncode
    )


@pytest.mark.skipif(not may_mount(), reason="mounting something for one process alone takes root")
@pytest.mark.proof
def test_a_worker_with_another_disk_under_the_same_path_completes_nothing(stage: Stage, folder: Path) -> None:
    mount = f'mount -t tmpfs none {folder} && exec "$@"'
    refused = stage.run(folder, "unshare", "-m", "sh", "-c", mount, "sh")
    assert refused.code == 1, refused.err
    assert f"{socket.gethostname()}:{folder / 'counting'} is not there" in refused.err
    assert stage.visible() == 0
