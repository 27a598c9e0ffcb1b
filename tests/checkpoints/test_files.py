"""Every file of a checkpoint, damaged in every way, is named; nothing outside its folder is looked at on its word."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from tests.checkpoints import damages
from tests.checkpoints.damages import DAMAGES, Damage
from tests.stored_job import JOB, SmallJob, StoredJob, stored_path, tree
from twopc.checkpoints.catalog import read_job
from twopc.checkpoints.files import examine, needed_by
from twopc.checkpoints.findings import Problem
from twopc.errors import ConfigurationError
from twopc.protocol.codec import to_json
from twopc.protocol.envelope import encode_fact
from twopc.protocol.facts import StateHandle
from twopc.protocol.ids import CheckpointId
from twopc.protocol.layout import metadata_path
from twopc.protocol.ledger_facts import METADATA_KIND
from twopc.storage.local import LocalStore

FILES = ["chk-2/metadata.json", "chk-2/subtask-1/manifest.json", "chk-2/subtask-1/000002.sst"]
PROBLEMS: dict[Damage, Problem] = {
    damages.cut_tail: Problem.TRUNCATED,
    damages.cut_long_tail: Problem.TRUNCATED,
    damages.cut_half: Problem.TRUNCATED,
    damages.empty: Problem.TRUNCATED,
    damages.delete: Problem.MISSING,
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredJob:
    made = StoredJob(tmp_path_factory.mktemp("stored") / "checkpoints")
    for _ in range(3):
        made.checkpoint()
    return made


@pytest.fixture
def job(stored: StoredJob, tmp_path: Path) -> StoredJob:
    """Three checkpoints, for this test alone."""
    return stored.copied_to(tmp_path / "checkpoints")


def placed(job: StoredJob, name: str) -> Path:
    return stored_path(job.folder, name) if "subtask" in name else job.folder / name


def found(job: StoredJob, only: int | None = None) -> dict[str, Problem]:
    examined = examine(LocalStore(job.root), JOB, None if only is None else CheckpointId(only))
    return {finding.file: finding.problem for finding in examined.findings}


def test_nothing_is_wrong_with_what_was_stored_and_all_of_it_was_read(job: StoredJob) -> None:
    examined = examine(LocalStore(job.root), JOB)
    stored = [path for path in job.folder.rglob("*") if path.is_file() and ".twins" not in path.parts]
    assert (examined.findings, examined.checkpoints) == ([], [1, 2, 3])
    assert (examined.files, examined.size_bytes) == (len(stored), sum(path.stat().st_size for path in stored))


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named_with_what_is_wrong_and_no_other_is(job: StoredJob, name: str, damage: Damage) -> None:
    path = placed(job, name)
    damage(path)
    wrong, file = found(job), str(path.relative_to(job.root))
    assert set(wrong) == {file}
    assert wrong[file] is PROBLEMS.get(damage, wrong[file])
    assert found(job, 2) == wrong
    assert found(job, 1) == {}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_ledger_is_named_and_the_checkpoints_are_checked_by_their_own_word(
    job: StoredJob, damage: Damage
) -> None:
    damage(max((job.folder / "ledger").glob("*.json")))
    lost = placed(job, "chk-1/subtask-0/000002.sst")
    lost.unlink()
    wrong = found(job)
    assert wrong.pop(str(lost.relative_to(job.root))) is Problem.MISSING
    assert [Path(file).parts[:2] for file in wrong] == [(JOB, "ledger")]
    assert examine(LocalStore(job.root), JOB).checkpoints == [1, 2, 3]


@pytest.mark.parametrize("name", [*FILES[:2], "ledger/000000000003.json"])
def test_a_newer_format_is_called_so(job: StoredJob, name: str) -> None:
    path = placed(job, name)
    path = path if path.exists() else max((job.folder / "ledger").glob("*.json"))
    data = path.read_bytes().replace(b'"format":1', b'"format":2')
    path.unlink()
    path.write_bytes(data)
    assert set(found(job).values()) == {Problem.NEWER_FORMAT}


def test_what_belongs_to_another_checkpoint_or_job_is_called_foreign(job: StoredJob, tmp_path: Path) -> None:
    other = StoredJob(tmp_path / "elsewhere", "other")
    other.checkpoint()
    for name, source in {
        "chk-1/metadata.json": other.folder / "chk-1/metadata.json",
        "chk-2/metadata.json": job.folder / "chk-3/metadata.json",
        "chk-3/subtask-0.json": job.folder / "chk-2/subtask-0.json",
    }.items():
        data = source.read_bytes()
        (job.folder / name).unlink()
        (job.folder / name).write_bytes(data)
    assert found(job) == dict.fromkeys(
        [f"{JOB}/chk-{number}/{name}" for number, name in enumerate(("metadata.json",) * 2, start=1)]
        + [f"{JOB}/chk-3/subtask-0.json"],
        Problem.FOREIGN,
    )


def test_what_nobody_stored_is_called_foreign(job: StoredJob) -> None:
    for name in ("chk-1/extra", "files/extra.sst", "ledger/extra.json"):
        (job.folder / name).write_bytes(b"planted")
    assert set(found(job)) == {f"{JOB}/{name}" for name in ("chk-1/extra", "files/extra.sst", "ledger/extra.json")}
    assert set(found(job).values()) == {Problem.FOREIGN}


@pytest.mark.parametrize("place", ["../outside", "/etc", "chk-2/../../outside", "chk-1/subtask-1", ""])
def test_metadata_that_leads_elsewhere_is_refused_and_nothing_there_is_read(
    job: StoredJob, tmp_path: Path, place: str
) -> None:
    """Whoever wrote this had the ledger in hand too: every digest is right."""
    metadata = read_job(LocalStore(job.root), JOB).completed[-1].metadata
    assert metadata is not None
    rewrite_state(job, replace(metadata.snapshots[1].state, path=place))
    (tmp_path / "outside").symlink_to(job.folder / "chk-3/subtask-1")
    (finding,) = examine(LocalStore(job.root), JOB).findings
    assert (finding.file, finding.problem) == (f"{JOB}/chk-3/metadata.json", Problem.FOREIGN)
    assert repr(place) in finding.message


@pytest.mark.parametrize("name", ["chk-2", "files"])
def test_a_folder_that_is_a_link_is_not_followed(job: StoredJob, tmp_path: Path, name: str) -> None:
    (job.folder / name).rename(tmp_path / "moved")
    (job.folder / name).symlink_to(tmp_path / "moved")
    assert [file for file in found(job) if file.startswith(f"{JOB}/{name}")] != []


def test_looking_changes_nothing(job: StoredJob) -> None:
    before = tree(job.root)
    (job.folder / "chk-2" / "metadata.json").chmod(0o400)
    examine(LocalStore(job.root), JOB)
    assert tree(job.root) == before


def test_a_checkpoint_is_checked_with_those_that_it_can_not_be_restored_without(tmp_path: Path) -> None:
    job = StoredJob(tmp_path / "checkpoints")
    first, second = job.checkpoint(), job.checkpoint()
    third = job.checkpoint(confirmed=False)
    job.heal(third, 1, first)
    assert [entry.checkpoint_id for entry in needed_by(read_job(LocalStore(job.root), JOB), third)] == [first, third]
    assert examine(LocalStore(job.root), JOB, third).checkpoints == [first, third]
    assert examine(LocalStore(job.root), JOB, second).checkpoints == [second]


def test_a_job_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no job 'nobody'"):
        examine(LocalStore(tmp_path), "nobody")


def rewrite_state(job: StoredJob, state: StateHandle) -> None:
    """Store other state for subtask 1 of the newest checkpoint."""
    metadata = read_job(LocalStore(job.root), JOB).completed[-1].metadata
    assert metadata is not None
    first, second = metadata.snapshots
    changed = replace(metadata, snapshots=(first, replace(second, state=state)))
    rewrite_newest(job, encode_fact(METADATA_KIND, to_json(changed)))


def rewrite_newest(job: StoredJob, data: bytes) -> None:
    """Store other metadata for the newest checkpoint, and a ledger that names it."""
    entry = read_job(LocalStore(job.root), JOB).completed[-1]
    path = job.folder / metadata_path(entry.checkpoint_id)
    path.unlink()
    path.write_bytes(data)
    job.rewrite_ledger(replace(entry.completed.record, metadata_sha256=sha256(data).hexdigest()))


def test_small_state_is_checked_with_the_metadata_and_a_folder_for_it_is_foreign(tmp_path: Path) -> None:
    small = SmallJob(tmp_path / "checkpoints")
    small.checkpoint()
    assert (found(small), [path.name for path in (small.folder / "chk-1").iterdir()]) == ({}, ["metadata.json"])
    (small.folder / "chk-1" / "subtask-1").mkdir()
    assert found(small) == {f"{JOB}/chk-1/subtask-1": Problem.FOREIGN}


def test_small_state_that_no_backend_wrote_is_named_by_the_metadata_that_has_it(tmp_path: Path) -> None:
    small = SmallJob(tmp_path / "checkpoints")
    small.checkpoint()
    rewrite_state(small, StateHandle.inline("chk-1/subtask-1", {"keyed": [["zz", "00"]]}, 0, 0))
    assert found(small) == {f"{JOB}/chk-1/metadata.json": Problem.DAMAGED}
