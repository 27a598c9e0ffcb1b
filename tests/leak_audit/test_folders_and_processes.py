"""Everything that a job may leave on this machine, planted and found."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.leak_audit import Finding, Place, Problem, look, report, wait_until_clean
from tests.stored_job import JOB, StoredJob
from twopc.protocol.ids import AttemptId, SubtaskIndex
from twopc.storage.files import create_once, make_folder
from twopc.storage.local import LocalStore
from twopc.storage.work_folder import make_work_folder

HOLD_A_LOCK = """
import sys
from pathlib import Path
from twopc.state.rocksdb import RocksDBBackend
backend = RocksDBBackend.open_fresh(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A job that stored something and left nothing."""
    for folder in ("temporary", "spark"):
        (tmp_path / folder).mkdir()
    make_folder(tmp_path / "checkpoints" / "orders" / "chk-1")
    create_once(tmp_path / "checkpoints" / "orders" / "chk-1" / "metadata.json", b"{}")
    return Place(
        "orders",
        checkpoint_dir=tmp_path / "checkpoints",
        marker=("OUTSIDER_TEST", uuid4().hex),
        temporary=tmp_path / "temporary",
        empty=(tmp_path / "spark",),
    )


@pytest.fixture
def start(place: Place) -> Iterator[Start]:
    """Starts a Python process of the job, which ends when its input does."""
    started = []

    def run(code: str, *arguments: str) -> subprocess.Popen[bytes]:
        assert place.marker is not None
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            env=os.environ | dict([place.marker]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, report(found)
    return found[0]


def test_where_nothing_is_left_nothing_is_found(place: Place) -> None:
    assert look(place) == []
    assert report([]) == "nothing was left behind"


def test_a_place_that_says_nothing_more_than_a_job_has_nothing_to_look_at(tmp_path: Path) -> None:
    assert look(Place("orders", temporary=tmp_path)) == []


def test_a_process_that_still_runs_is_found_until_it_has_ended(place: Place, start: Start) -> None:
    process = start("import sys; print(flush=True); sys.stdin.read()")
    assert process.stdout is not None
    process.stdout.readline()
    found = only(look(place))
    assert (found.problem, found.where) == (Problem.LEAKED_PROCESS, f"process {process.pid}")
    process.communicate()
    assert look(place) == []


def test_a_process_that_ended_and_was_not_waited_for_is_no_leak(place: Place, start: Start) -> None:
    process = start("pass")
    assert process.stdout is not None
    process.stdout.read()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert look(place) == []


def test_a_process_of_another_run_is_not_found(place: Place, start: Start) -> None:
    process = start("import sys; print(flush=True); sys.stdin.read()")
    assert process.stdout is not None
    process.stdout.readline()
    assert look(replace(place, marker=("OUTSIDER_TEST", "another"))) == []


def test_what_a_job_deletes_while_it_is_looked_at_is_no_trouble(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert place.checkpoint_dir is not None
    doomed, scan = place.checkpoint_dir / "orders" / "chk-1", os.scandir

    def scan_too_late(folder: str) -> Any:
        if Path(folder) == doomed and doomed.exists():
            doomed.rename(tmp_path / "deleted")
        return scan(folder)

    monkeypatch.setattr(os, "scandir", scan_too_late)
    assert look(place) == []
    assert not doomed.exists()


def test_looking_goes_on_until_what_takes_time_to_end_has_ended(place: Place, start: Start) -> None:
    process = start("import sys, time; print(flush=True); time.sleep(0.3)")
    assert process.stdout is not None
    process.stdout.readline()
    assert wait_until_clean(place, seconds=60) == []


def test_what_never_ends_is_found_when_the_time_is_up(place: Place, start: Start) -> None:
    process = start("import sys; print(flush=True); sys.stdin.read()")
    assert process.stdout is not None
    process.stdout.readline()
    assert only(wait_until_clean(place, seconds=0.2)).problem is Problem.LEAKED_PROCESS


def test_the_folder_that_a_subtask_makes_for_its_state_is_found(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place.temporary))
    assert place.checkpoint_dir is not None
    folder = make_work_folder(LocalStore(place.checkpoint_dir), "orders", SubtaskIndex(0), AttemptId(3))
    found = only(look(place))
    assert (found.problem, found.what) == (Problem.LEFTOVER_WORK_FOLDER, "subtask-0")
    assert folder.is_relative_to(found.where)


def test_a_stored_file_that_no_manifest_names_is_found(tmp_path: Path) -> None:
    job = StoredJob(tmp_path / "checkpoints")
    job.checkpoint()
    place = Place(JOB, checkpoint_dir=job.root, temporary=tmp_path)
    assert look(place) == []
    left = job.folder / "files" / "1-0-3fa9c1d2-000012.sst"
    create_once(left, b"of a subtask that was killed before its manifest was there")
    found = only(look(place))
    assert (found.problem, found.where) == (Problem.UNNAMED_FILE, str(left))
    job.checkpoint()
    job.ledger.prune()
    assert look(place) == [], "the next checkpoint sweeps it"


def test_the_work_folder_of_a_job_with_a_longer_name_is_not_this_jobs(place: Place) -> None:
    (place.temporary / "twopc-orders-eu-0123456789ab").mkdir()
    assert look(place) == []


def test_the_lock_of_a_rocksdb_is_found_while_a_process_holds_it(place: Place, start: Start) -> None:
    work = place.temporary / "twopc-orders-0123456789ab"
    work.mkdir()
    process = start(HOLD_A_LOCK, str(work / "state"))
    assert process.stdout is not None
    process.stdout.readline()
    problems = {found.problem: found for found in look(place)}
    assert problems[Problem.HELD_LOCK].what == f"by process {process.pid}"
    assert problems[Problem.HELD_LOCK].where == str(work / "state" / "LOCK")
    process.kill()
    process.communicate()
    assert only(look(place)).problem is Problem.LEFTOVER_WORK_FOLDER


@pytest.mark.parametrize(
    "name", ["ledger/.tmp-1", "chk-1/.tmp-1", "chk-1/.subtask-0.tmp-1", "chk-1/.subtask-0.tmp-1/.tmp-2"]
)
def test_what_is_half_written_in_the_checkpoint_folder_is_found(place: Place, name: str) -> None:
    assert place.checkpoint_dir is not None
    path = place.checkpoint_dir / "orders" / name
    path.mkdir(mode=0o700, parents=True)
    for parent in path.relative_to(place.checkpoint_dir).parents:
        (place.checkpoint_dir / parent).chmod(0o700)
    found = look(place)
    assert {each.problem for each in found} == {Problem.TEMPORARY_FILE}
    assert str(path) in {each.where for each in found}


def test_what_other_users_could_read_is_found(place: Place) -> None:
    assert place.checkpoint_dir is not None
    path = place.checkpoint_dir / "orders" / "chk-1" / "metadata.json"
    path.chmod(0o640)
    found = only(look(place))
    assert (found.problem, found.where, found.what) == (Problem.OPEN_TO_OTHERS, str(path), "its mode is 640")


def test_a_folder_that_should_be_empty_is_found_with_what_it_holds(place: Place) -> None:
    (place.empty[0] / "blockmgr-1").mkdir()
    found = only(look(place))
    assert (found.problem, found.what) == (Problem.NOT_EMPTY, "blockmgr-1")


def test_a_finding_says_what_where_and_why_it_matters() -> None:
    found = Finding(Problem.OPEN_TRANSACTION, "orders-0-1", "Ongoing")
    assert report([found]).startswith("OPEN_TRANSACTION: orders-0-1: Ongoing (a transaction under the job's prefix")
