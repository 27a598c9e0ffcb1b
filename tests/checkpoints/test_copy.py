"""A checkpoint packed into a folder or an archive is the same elsewhere, and whatever is no such thing is refused."""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from coordinator.ledger import Ledger
from tests.checkpoints.damages import DAMAGES, Damage
from tests.storage.disks import FAULTS, FailingDisk, Fault, SteppedDisk, count_steps, under_files
from tests.stored_job import JOB, SmallJob, StoredJob, name_of, stored_path, tree
from twopc.checkpoints.archive import copy_to, opened, pack, unpack
from twopc.checkpoints.catalog import read_job
from twopc.checkpoints.copy import copy_checkpoint
from twopc.checkpoints.files import examine
from twopc.checkpoints.reference import LocatedCheckpoint, locate
from twopc.config import RunSettings
from twopc.driver.start import checkpoint_to_restore
from twopc.errors import CheckpointCorrupted, ConfigurationError, ForeignFile, Unavailable
from twopc.inspect import open_checkpoint
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.ids import CheckpointId
from twopc.storage.local import LocalStore
from twopc.storage.store import has_ledger

Copier = Callable[[LocatedCheckpoint, Path], None]


def copy_to_folder(located: LocatedCheckpoint, target: Path) -> None:
    copy_checkpoint(located, LocalStore(target))


copiers = pytest.mark.parametrize(("copier", "name"), [(copy_to_folder, "copy"), (pack, "copy.tar")])


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredJob:
    made = StoredJob(tmp_path_factory.mktemp("stored") / "checkpoints")
    made.checkpoint()
    made.checkpoint(CheckpointKind.SAVEPOINT, "before-1.2")
    made.checkpoint()
    made.checkpoint(confirmed=False)
    made.heal(CheckpointId(4), 1, CheckpointId(2))
    return made


@pytest.fixture
def job(stored: StoredJob, tmp_path: Path) -> StoredJob:
    """Four checkpoints; the second is a savepoint, from which the last is healed."""
    return stored.copied_to(tmp_path / "checkpoints")


def from_elsewhere(reference: Path, root: Path, job: str = JOB) -> str:
    return checkpoint_to_restore(RunSettings(checkpoint_dir=str(root), restore_from=str(reference)), job)


@copiers
def test_a_copy_is_whole_without_the_original(job: StoredJob, tmp_path: Path, copier: Copier, name: str) -> None:
    copier(locate("before-1.2", LocalStore(job.root)), tmp_path / name)
    shutil.rmtree(job.root)
    with opened(str(tmp_path / name), LocalStore(tmp_path / "nowhere")) as located:
        assert (located.checkpoint_id, located.entry.label) == (2, "before-1.2")
        assert located.entry.confirmed == {name_of(0, 2), name_of(1, 2)}
        examined = examine(located.root, JOB)
    assert (examined.checkpoints, examined.findings) == ([2], [])


@copiers
def test_a_copy_holds_what_healed_subtasks_need(job: StoredJob, tmp_path: Path, copier: Copier, name: str) -> None:
    copier(locate("latest", LocalStore(job.root)), tmp_path / name)
    shutil.rmtree(job.root)
    with opened(str(tmp_path / name), LocalStore(tmp_path)) as located:
        assert [entry.checkpoint_id for entry in located.found.completed] == [2, 4]
        paths = [snapshot.state.path for snapshot in located.restorable().snapshots]
    assert paths == ["chk-4/subtask-0", "chk-2/subtask-1"]


@copiers
def test_a_run_brings_a_copy_to_a_checkpoint_folder_of_its_own(
    job: StoredJob, tmp_path: Path, copier: Copier, name: str
) -> None:
    copier(locate("2", LocalStore(job.root)), tmp_path / name)
    before = {file: digest for file, digest in tree(job.folder).items() if file.startswith("chk-2/")}
    last_reserved = job.ledger.state.last_reserved
    shutil.rmtree(job.root)
    here = tmp_path / "here"
    assert from_elsewhere(tmp_path / name, here) == "2"
    assert {file: digest for file, digest in tree(here / JOB).items() if file.startswith("chk-")} == before
    state = Ledger(JOB, LocalStore(here / JOB)).state
    assert (state.current, state.last_reserved) == (1, last_reserved)
    assert [path.name for path in here.iterdir()] == [JOB]
    assert from_elsewhere(tmp_path / name, here) == "2", "the same command again finds it there"


def test_a_savepoint_of_another_checkpoint_folder_is_restored_by_its_path(job: StoredJob, tmp_path: Path) -> None:
    assert from_elsewhere(job.folder / "chk-2", tmp_path / "here") == "2"
    assert [entry.checkpoint_id for entry in read_job(LocalStore(tmp_path / "here"), JOB).completed] == [2]


def test_a_job_with_another_past_is_not_mixed_with_a_copy(job: StoredJob, tmp_path: Path) -> None:
    other = StoredJob(tmp_path / "here")
    other.start()
    other.checkpoint()
    before = tree(other.root)
    with pytest.raises(ConfigurationError, match=r"has a past of its own .* name another --checkpoint-dir"):
        from_elsewhere(job.folder / "chk-1", other.root)
    with pytest.raises(ConfigurationError, match=f"belongs to job '{JOB}', not to 'other'"):
        from_elsewhere(job.folder / "chk-1", tmp_path / "there", "other")
    assert tree(other.root) == before


@copiers
def test_what_is_there_already_is_never_replaced(job: StoredJob, tmp_path: Path, copier: Copier, name: str) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "full" / name).mkdir(parents=True)
    (tmp_path / "full" / name / "file").write_bytes(b"mine")
    (tmp_path / name).symlink_to(tmp_path / "mine")
    for target in (tmp_path / name, tmp_path / "full" / name):
        with pytest.raises(ConfigurationError, match=r"is there already|can't be kept"):
            copier(locate("2", LocalStore(job.root)), target)
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert [path.name for path in (tmp_path / "full" / name).iterdir()] == ["file"]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_nothing_damaged_is_copied(job: StoredJob, tmp_path: Path, damage: Damage) -> None:
    for name in ("chk-2/subtask-1/MANIFEST-000003", "chk-3/subtask-0/manifest.json"):
        path = stored_path(job.folder, name)
        damage(path)
        with pytest.raises(CheckpointCorrupted, match=re.escape(str(path.relative_to(job.root)))):
            copy_checkpoint(locate(name.split("/")[0], LocalStore(job.root)), LocalStore(tmp_path / "copy"))
    assert [path for path in (tmp_path / "copy").rglob("*") if path.is_file()] == []


def test_a_checkpoint_that_retention_deletes_meanwhile_is_named_as_that(job: StoredJob, tmp_path: Path) -> None:
    located = locate("1", LocalStore(job.root))
    job.forget(CheckpointId(1))
    with pytest.raises(ConfigurationError, match="was deleted while it was copied"):
        copy_checkpoint(located, LocalStore(tmp_path / "copy"))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
@copiers
def test_wherever_the_disk_fails_there_is_no_half_a_copy(
    job: StoredJob, tmp_path: Path, copier: Copier, name: str, fault: Fault
) -> None:
    located = locate("1", LocalStore(job.root))
    steps = count_steps(lambda: copier(located, tmp_path / f"first-{name}"))
    for at in range(1, steps + 1, 7):
        home = tmp_path / f"{at}"
        home.mkdir()
        with under_files(FailingDisk(fault, at)), suppress(Unavailable):
            copier(located, home / name)
        with under_files(SteppedDisk()):
            if (home / name).is_file() or has_ledger(LocalStore(home / name / JOB)):
                with opened(str(home / name), LocalStore(home)) as found:
                    assert examine(found.root, JOB).findings == [], at


def archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for member, data in members:
            member.size = len(data) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(data))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


@pytest.mark.parametrize(
    "name",
    [
        "../outside", "/tmp/outside", f"{JOB}/../../outside", f"{JOB}/chk-1/../../../outside", f"{JOB}/ledger/../x",
        "outside", f"{JOB}/outside", f"{JOB}/files/7-0-3f-../x", f"{JOB}/files/.hidden", "..", "", f"{JOB}/files/x.sst",
        f"{JOB}/ledger/.twins/000000000001.json", f"{JOB}/chk-1/a/b", f"{JOB}/files/7-0-3f-a\nb",
    ],
)  # fmt: skip
def test_a_member_under_a_name_that_no_copy_has_is_refused(tmp_path: Path, name: str) -> None:
    path = archive(tmp_path / "evil.tar", (member(name), b"planted"))
    with pytest.raises(ForeignFile, match=r"evil\.tar"):
        unpack(path, tmp_path / "into" / "here")
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [path]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_a_member_that_is_no_regular_file_is_refused(tmp_path: Path, kind: bytes) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    path = archive(tmp_path / "evil.tar", (member(f"{JOB}/chk-1/metadata.json", kind, "../../../../secret"), b""))
    with pytest.raises(ForeignFile, match="no copy of a checkpoint has"):
        unpack(path, tmp_path / "into")
    assert list((tmp_path / "into").rglob("*")) == []


def test_a_folder_that_is_a_link_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    link = member(f"{JOB}/files", tarfile.SYMTYPE, str(tmp_path / "outside"))
    path = archive(tmp_path / "evil.tar", (link, b""), (member(f"{JOB}/files/1-0-3f-x.sst"), b"planted"))
    with pytest.raises(ForeignFile):
        unpack(path, tmp_path / "into")
    assert list((tmp_path / "outside").iterdir()) == []


def test_an_archive_whose_reading_ends_early_is_named_and_not_what_was_unpacked(job: StoredJob, tmp_path: Path) -> None:
    path = tmp_path / "copy.tar"
    pack(locate("2", LocalStore(job.root)), path)
    whole = path.read_bytes()
    # Before the header of each file stands one with what is too long or too exact for it, and what that holds.
    header = whole.index(f"{JOB}/chk-2/subtask-1.json".encode()) - 2 * tarfile.BLOCKSIZE
    path.write_bytes(whole[:header] + b"X" + whole[header + 1 :])
    with pytest.raises(ForeignFile, match=rf"copy\.tar was cut or damaged: what stands at byte {header:,} is no file"):
        unpack(path, tmp_path / "one")
    filled = len(whole.rstrip(tarfile.NUL))
    path.write_bytes(whole[: filled + -filled % tarfile.BLOCKSIZE])
    with pytest.raises(ForeignFile, match=r"copy\.tar was cut or damaged"):
        unpack(path, tmp_path / "two")


def test_an_archive_holds_one_job_with_its_ledger(tmp_path: Path) -> None:
    stored = (member(f"{JOB}/chk-1/metadata.json"), b"{}")
    ledger = (member(f"{JOB}/ledger/000000000001.json"), b"{}")
    other = (member("other/chk-1/metadata.json"), b"{}")
    for name, members in {"none": (), "no-ledger": (stored,), "two-jobs": (stored, ledger, other)}.items():
        with pytest.raises(ForeignFile, match=rf"{name}\.tar is not an archive of a checkpoint"):
            unpack(archive(tmp_path / f"{name}.tar", *members), tmp_path / name)


@pytest.mark.parametrize("name", ["copy.tar.gz", "copy.tgz", "copy.zip"])
def test_a_name_that_says_another_archive_is_refused(job: StoredJob, tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"ends with \.tar"):
        copy_to(locate("2", LocalStore(job.root)), str(tmp_path / name))
    assert not (tmp_path / name).exists()


def test_a_member_that_is_there_twice_replaces_nothing(tmp_path: Path) -> None:
    name = f"{JOB}/chk-1/metadata.json"
    path = archive(tmp_path / "twice.tar", (member(name), b"first"), (member(name), b"second"))
    with pytest.raises(ForeignFile, match="twice"):
        unpack(path, tmp_path / "into")


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_archive_is_refused_or_its_files_are_named(job: StoredJob, tmp_path: Path, damage: Damage) -> None:
    path = tmp_path / "a" / "b" / "copy.tar"
    path.parent.mkdir(parents=True)
    pack(locate("2", LocalStore(job.root)), path)
    with opened(str(path), LocalStore(tmp_path)) as located:
        whole = tree(Path(located.root.identity))
    damage(path)
    try:
        with opened(str(path), LocalStore(tmp_path / "nowhere"), JOB) as located:
            wrong = examine(located.root, located.job).findings
            # Some bytes of an archive say nothing: what fills its blocks up.
            assert wrong or tree(Path(located.root.identity)) == whole
    except (ForeignFile, CheckpointCorrupted, ConfigurationError):
        pass
    assert not (tmp_path / "a" / "executed").exists()


def test_an_archive_says_nothing_of_the_machine_that_it_was_made_on(job: StoredJob, tmp_path: Path) -> None:
    pack(locate("2", LocalStore(job.root)), tmp_path / "copy.tar")
    with tarfile.open(tmp_path / "copy.tar") as tar:
        assert {(each.uid, each.gid, each.uname, each.gname) for each in tar} == {(0, 0, "", "")}
        assert json.dumps(tar.getnames()).count("subtask-0") == 1
    assert (tmp_path / "copy.tar").stat().st_mode & 0o077 == 0


@copiers
def test_a_copy_of_a_checkpoint_with_small_state_is_whole_too(tmp_path: Path, copier: Copier, name: str) -> None:
    small = SmallJob(tmp_path / "checkpoints")
    small.checkpoint()
    copier(locate("1", LocalStore(small.root)), tmp_path / name)
    shutil.rmtree(small.root)
    here = tmp_path / "here"
    assert from_elsewhere(tmp_path / name, here) == "1"
    examined = examine(LocalStore(here), JOB)
    assert (examined.checkpoints, examined.findings) == ([1], [])
    with open_checkpoint("1", checkpoint_dir=here) as checkpoint:
        assert {entry.key: entry.raw for entry in checkpoint.entries("count")} == {b"LGA": b"1"}


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_header_that_claims_more_than_memory_holds_is_refused_by_name(tmp_path: Path, kind: bytes) -> None:
    claiming = member("name", kind)
    claiming.size = 2**40
    path = tmp_path / "evil.tar"
    path.write_bytes(claiming.tobuf(tarfile.GNU_FORMAT) + bytes(10 * tarfile.BLOCKSIZE))
    with pytest.raises(ForeignFile, match=r"evil\.tar is not an archive.*claims 1,099,511,627,776 bytes"):
        unpack(path, tmp_path / "into")
