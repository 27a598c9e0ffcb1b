"""Workers as plain processes: they start before the driver knows what they are, and are told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.kafka.kit import eventually
from twopc.config import RunSettings
from twopc.driver.host import Told
from twopc.driver.processes import TOLD_TO_END, ProcessHost, plain_processes_begun
from twopc.graph import JobDefinition
from twopc.loader.job_loader import load_job
from twopc.protocol.ids import AttemptId, SubtaskIndex
from twopc.runtime.spec import SubtaskSpec

JOB = """
import os, pathlib
from twopc import Job, KafkaSink, KafkaSource
pathlib.Path(f"loaded-by-{os.getpid()}").touch()
job = Job("pids")
job.source(KafkaSource("in")).sink(KafkaSink("out"))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a command is given in, with a job file that leaves a file for each process that loads it."""
    (tmp_path / "job.py").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def host(folder: Path) -> Iterator[ProcessHost]:
    host = ProcessHost(str(folder / "job.py"))
    yield host
    host.close()


@pytest.fixture
def definition(folder: Path) -> JobDefinition:
    return load_job("job.py")


def spec() -> SubtaskSpec:
    """A subtask that finds no coordinator; its job is loaded before it looks for one."""
    settings = RunSettings(checkpoint_dir="checkpoints", bootstrap_servers="127.0.0.1:1")
    return SubtaskSpec("pids", AttemptId(1), SubtaskIndex(0), 1, "127.0.0.1:1", "", settings, (), ())


def pids(folder: Path) -> set[int]:
    """The processes but this one that have loaded the job in this folder."""
    return {int(each.name.rpartition("-")[2]) for each in folder.glob("loaded-by-*")} - {os.getpid()}


def test_a_worker_that_waits_becomes_a_subtask_and_one_more_starts_where_none_is_left(
    host: ProcessHost, definition: JobDefinition, folder: Path
) -> None:
    host.begin(1)
    (waiting,) = [process.pid for process in host._waiting]
    host.submit(definition, [spec(), spec()])
    eventually(lambda: len(pids(folder)) == 2)
    assert waiting in pids(folder)


def test_a_subtask_runs_where_its_job_was_loaded_wherever_workers_wait(
    host: ProcessHost, definition: JobDefinition, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere := folder / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    host.begin(1)
    (waiting,) = [process.pid for process in host._waiting]
    host.submit(definition, [spec()])
    eventually(lambda: bool(pids(folder)))
    assert (pids(elsewhere), waiting in pids(folder)) == (set(), False)


def test_a_worker_that_is_told_nothing_ends_without_loading_the_job(host: ProcessHost, folder: Path) -> None:
    host.begin(1)
    (waiting,) = host._waiting
    assert waiting.stdin is not None
    waiting.stdin.close()
    assert (waiting.wait(60), pids(folder)) == (TOLD_TO_END, set())


def test_workers_that_wait_are_no_more_than_cores_and_end_where_the_job_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    settings = RunSettings(host="process", parallelism=3)
    with suppress(LookupError), plain_processes_begun(settings, "job.py") as host:
        assert host is not None
        waiting = list(host._waiting)
        raise LookupError
    assert (len(waiting), any(process.poll() is None for process in waiting)) == (2, False)


def test_a_process_that_was_killed_has_told_nobody_why(host: ProcessHost, definition: JobDefinition) -> None:
    running = host.submit(definition, [spec()])
    (process,) = running._processes
    process.kill()
    assert (running.wait(60), running.told_why()) == (True, Told.NO)
    assert "was killed by SIGKILL" in str(running.error())


def test_nothing_begins_for_another_host(folder: Path) -> None:
    with plain_processes_begun(RunSettings(host="inline"), "job.py") as host:
        assert host is None
