"""Deleting old checkpoints, stopped or cut off from power at every single step: what is kept stays whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import count, product
from pathlib import Path

import pytest

from coordinator.ledger import Ledger
from tests.storage.disks import PowerCut, SteppedDisk, StoppingDisk, count_steps, under_files
from tests.stored_job import JOB, StoredJob, stored_files, stored_path
from twopc.checkpoints.catalog import read_job
from twopc.checkpoints.files import examine
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ids import CheckpointId
from twopc.storage.local import LocalStore

OLD = (CheckpointId(2), CheckpointId(3))


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[StoredJob]:
    """Jobs with a savepoint and four other checkpoints, that share a file; each is another."""

    def made() -> Iterator[StoredJob]:
        for number in count():
            with under_files(SteppedDisk()):
                job = StoredJob(tmp_path / f"{number}" / "checkpoints")
                job.checkpoint(CheckpointKind.SAVEPOINT)
                for _ in range(4):
                    job.checkpoint()
            yield job

    return made()


@pytest.mark.parametrize("lost", ["nothing", "everything"])
def test_wherever_it_stops_every_checkpoint_that_is_kept_is_whole_and_the_rest_goes_later(
    jobs: Iterator[StoredJob], tmp_path: Path, lost: str
) -> None:
    counted = next(jobs)
    shared = {stored_path(counted.folder, f"chk-{number}/subtask-0/000001.sst") for number in (1, 2, 5)}
    assert len(shared) == 1
    for at in range(1, count_steps(lambda: counted.forget(*OLD)) + 2):
        job, trash = next(jobs), tmp_path / f"trash-{at}"
        trash.mkdir()
        disk = StoppingDisk(trash, at)
        with under_files(disk), suppress(PowerCut):
            job.forget(*OLD)
        disk.lose(disk.chooser(lost, 0))
        kept = [entry.checkpoint_id for entry in read_job(LocalStore(job.root), JOB).completed]
        assert kept in ([1, 2, 3, 4, 5], [1, 4, 5]), at
        assert examine(LocalStore(job.root), JOB).findings == [], at
        with under_files(SteppedDisk()):
            job.ledger = Ledger(JOB, LocalStore(job.folder))
            job.forget(*OLD)
        names = sorted(path.name for path in job.folder.iterdir())
        assert names == ["chk-1", "chk-4", "chk-5", "files", "ledger"], at
        assert set((job.folder / "files").iterdir()) == {
            path
            for number, subtask in product((1, 4, 5), (0, 1))
            for path in stored_files(job.folder, f"chk-{number}/subtask-{subtask}").values()
        }, at
        assert examine(LocalStore(job.root), JOB).findings == [], at
