"""A job with one checkpoint, of real state; RocksDB takes its time to be made, so it is made as seldom as possible."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.inspect.kit import LEFT, RIGHT, JobWithState


def stored(root: Path) -> JobWithState:
    job = JobWithState(root)
    job.put(LEFT, b"LGA", b"3")
    job.put(LEFT, b"EWR", b"5")
    job.put(RIGHT, b"LGA", b"2")
    job.put(RIGHT, b"\xff\x00", b'{"n":[1,null]}')
    job.checkpoint()
    return job


@pytest.fixture
def job(tmp_path: Path) -> JobWithState:
    """Its checkpoint 1 holds LGA 3 and EWR 5 in one partition, LGA 2 and a key that is not text in the other."""
    return stored(tmp_path / "checkpoints")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> JobWithState:
    """The same, to look at only."""
    return stored(tmp_path_factory.mktemp("shared") / "checkpoints")


@pytest.fixture
def job_folder(shared: JobWithState, tmp_path: Path) -> Path:
    """The same, to be damaged: the folder of the job, in a checkpoint folder of its own."""
    folder = tmp_path / "checkpoints" / shared.job
    shutil.copytree(shared.folder, folder, copy_function=shutil.copyfile)
    return folder
