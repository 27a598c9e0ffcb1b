"""Every file that a job stored, damaged in every way: a restore refuses it by name, and takes nothing older instead."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from coordinator.jobs import Jobs
from tests.checkpoints.damages import DAMAGES, NEED_BYTES, Damage, delete, proof_of
from tests.coordinator.kit import JOB, SETTINGS, Recorder, Scene
from tests.storage.disks import SteppedDisk, under_files
from twopc.checkpoints.catalog import read_job
from twopc.clock import ManualClock
from twopc.errors import CheckpointCorrupted
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.topic_partition import Position, TopicPartition
from twopc.partition_groups import concerning
from twopc.protocol.facts import Committable, SubtaskSnapshot
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.layout import FILES, LEDGER, TWINS, name_of_file
from twopc.protocol.messages import Ack
from twopc.protocol.requests import StartAttempt
from twopc.state.backend import Family
from twopc.state.layout import StateName, state_prefix
from twopc.state.positions import write_positions
from twopc.state.restore import restore_state
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.local import LocalStore

pytestmark = pytest.mark.simulation

OTHER = "trains"
SUBTASKS = 2
CHECKPOINTS = 2
Restored = dict[int, list[tuple[bytes, bytes]]]


def play(root: Path, job: str, work: Path) -> None:
    """Run a job with two subtasks until two checkpoints are completed, and an attempt more."""
    scene = Scene(LocalStore(root / job), job=job)
    scene.run(SUBTASKS)
    storage = SnapshotStore(LocalStore(root).within(job))
    backends = [RocksDBBackend.open_fresh(work / f"{job}-{subtask}") for subtask in range(SUBTASKS)]
    for number in range(1, CHECKPOINTS + 1):
        scene.wait(SETTINGS.interval_ms)
        for index, backend in enumerate(backends):
            snapshot = take(storage, backend, job, index, number, work)
            scene.say(index, Ack(CheckpointId(number), snapshot))
        for index in range(SUBTASKS):
            scene.committed(index, number)
    scene.end()
    for backend in backends:
        backend.close()


def take(
    storage: SnapshotStore, backend: RocksDBBackend, job: str, index: int, number: int, work: Path
) -> SubtaskSnapshot:
    partition = TopicPartition(f"{job}-in", index)
    positions = (PartitionPosition(partition, "id", Position(number * 100)).to_split_position(),)
    prefix = state_prefix(StateName.parse("count"), index)
    backend.put_many(Family.KEYED, [(prefix + b"%d" % key, b"%s %d" % (job.encode(), number)) for key in range(200)])
    write_positions(backend, positions)
    folder = work / f"{job}-{index}-{number}"
    backend.snapshot(folder)
    handle = storage.put(CheckpointId(number), SubtaskIndex(index), folder, backend.key_count())
    committable = Committable(f"{job}-{index}-{number}", CheckpointId(number), SubtaskIndex(index), {})
    return SubtaskSnapshot.of(SubtaskIndex(index), positions, handle, (committable,))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint folder with two jobs."""
    root, work = tmp_path_factory.mktemp("sound"), tmp_path_factory.mktemp("work")
    with under_files(SteppedDisk()):
        for job in (JOB, OTHER):
            play(root, job, work)
    return root


@pytest.fixture
def copy(sound: Path, tmp_path: Path) -> Path:
    """A copy of it to be damaged. Twins stay the same files as what they are twins of."""
    to = shutil.copytree(sound, tmp_path / "checkpoints")
    for job in (JOB, OTHER):
        for twin in (to / job / TWINS).iterdir():
            twin.unlink()
            twin.hardlink_to(to / job / LEDGER / twin.name)
    return to


def restore(root: Path, work: Path, job: str = JOB, restore_from: str = "latest") -> tuple[int, Restored]:
    """Start an attempt as a driver does, and restore every subtask as a worker does; all that they then know."""
    with under_files(SteppedDisk()):
        jobs = Jobs(LocalStore(root).within, ManualClock(), Recorder())
        started = jobs.start_attempt(job, StartAttempt(SUBTASKS, SETTINGS, restore_from))
        assert started.restored is not None
        known: Restored = {}
        for index in range(SUBTASKS):
            backend = restore_state(
                SnapshotStore(LocalStore(root).within(job)),
                concerning(SubtaskIndex(index), [index], started.restored.snapshots),
                [index],
                SubtaskIndex(index),
                work,
            )
            known[index] = list(backend.scan(Family.KEYED))
            backend.close()
        return started.restored.checkpoint_id, known


def files_of(root: Path, job: str = JOB) -> list[str]:
    """Every file that a restore of some checkpoint needs."""
    folder = root / job
    return sorted(
        path.relative_to(root).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_relative_to(folder / TWINS)
    )


def checkpoint_of(name: str) -> str:
    """The checkpoint whose restore needs this file."""
    _, folder, file = name.split("/")[:3]
    if folder == FILES:
        return file.partition("-")[0]
    return folder.removeprefix("chk-") if folder.startswith("chk-") else "latest"


def kind_of(name: str) -> str:
    """What a file is called where it is used."""
    return name_of_file(name.partition("/")[2]) or name.rpartition("/")[2]


def refusal(root: Path, work: Path, name: str) -> str:
    """What a restore that needs this file says."""
    try:
        restored, _ = restore(root, work, restore_from=checkpoint_of(name))
    except CheckpointCorrupted as error:
        assert error.exit_code == 5  # noqa: PT017
        return str(error)
    pytest.fail(f"checkpoint {restored} was restored in spite of {name}")


def test_a_sound_job_is_restored_from_either_checkpoint(copy: Path, tmp_path: Path) -> None:
    assert restore(copy, tmp_path / "work")[0] == CHECKPOINTS
    number, known = restore(copy, tmp_path / "work", restore_from="1")
    assert number == 1
    assert [value for items in known.values() for _, value in items] == [b"flights 1"] * 400


def test_every_kind_of_file_is_among_those_that_are_damaged_here(sound: Path) -> None:
    kinds = {kind_of(name).split("-")[0] for name in files_of(sound)}
    assert kinds >= {"metadata.json", "subtask", "MANIFEST", "CURRENT", "OPTIONS", "rocksdict"}
    assert any(kind.endswith(".sst") for kind in kinds)
    stored = [json.loads((sound / name).read_bytes())["kind"] for name in files_of(sound) if f"/{LEDGER}/" in name]
    assert set(stored) >= {"summary", "checkpoint-reserved", "checkpoint-completed", "committables-confirmed"}


@contextmanager
def changed(root: Path, name: str, how: Damage) -> Iterator[None]:
    """Let another file of this name be damaged; afterwards the file is there that was, second names included."""
    path, kept = root / name, root.parent / f"kept-{name.replace('/', '-')}"
    path.rename(kept)
    path.write_bytes(kept.read_bytes())
    try:
        how(path)
        yield
    finally:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        path.unlink(missing_ok=True)
        kept.rename(path)


def overwriting(data: bytes) -> Damage:
    def write(path: Path) -> None:
        path.unlink()
        path.write_bytes(data)

    return write


def damageable(root: Path, damage: Damage) -> list[str]:
    """What this can change: an empty file has no tail and no bits. The ledger first, since attempts change it."""
    names = [name for name in files_of(root) if (root / name).stat().st_size or damage not in NEED_BYTES]
    return sorted(names, key=lambda name: LEDGER not in name)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_to_any_file_is_refused_by_name(copy: Path, tmp_path: Path, damage: Damage) -> None:
    for name in damageable(copy, damage):
        with changed(copy, name, damage):
            assert name in refusal(copy, tmp_path / "work", name), name
            assert not proof_of(copy / name).exists()
    assert restore(copy, tmp_path / "work")[0] == CHECKPOINTS


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_to_what_tools_read_is_said_by_name(copy: Path, damage: Damage) -> None:
    for name in damageable(copy, damage):
        with changed(copy, name, damage):
            if f"/{LEDGER}/" in name:
                with pytest.raises(CheckpointCorrupted, match=name):
                    read_job(LocalStore(copy), JOB)
            elif name.endswith("metadata.json"):
                found = {str(entry.checkpoint_id): entry for entry in read_job(LocalStore(copy), JOB).completed}
                assert name in found[checkpoint_of(name)].damage
                assert found[checkpoint_of(name)].metadata is None


def others(root: Path, name: str) -> list[Path]:
    """Files of the same kind that stand elsewhere: in another checkpoint, subtask or job, or at another number."""
    path = root / name
    swapped = [name.replace(JOB, OTHER, 1)]
    swapped += [name.replace("chk-1/", "chk-2/"), name.replace("chk-2/", "chk-1/")]
    swapped += [name.replace("subtask-0", "subtask-1"), name.replace("subtask-1", "subtask-0")]
    found = [root / other for other in swapped if other != name and (root / other).exists()]
    if f"/{FILES}/" in name:
        names = [*files_of(root), *files_of(root, OTHER)]
        found += [root / each for each in names if each != name and kind_of(each) == kind_of(name)]
    if f"/{LEDGER}/" in name:
        kind = json.loads(path.read_bytes())["kind"]
        entries = [each for each in path.parent.glob("*.json") if each != path]
        found += [each for each in entries if json.loads(each.read_bytes())["kind"] == kind]
    return [other for other in found if other.read_bytes() != path.read_bytes()]


def swaps(root: Path) -> list[tuple[str, str]]:
    names = sorted(files_of(root), key=lambda name: LEDGER not in name)
    return [(name, other.relative_to(root).as_posix()) for name in names for other in others(root, name)]


def test_a_file_in_the_place_of_another_of_its_kind_is_refused_by_name(copy: Path, tmp_path: Path) -> None:
    found = swaps(copy)
    assert len(found) > len(files_of(copy))
    for name, other in found:
        data = (copy / other).read_bytes()
        with changed(copy, name, overwriting(data)):
            assert name in refusal(copy, tmp_path / "work", name), f"{other} in the place of {name}"


def test_two_files_that_changed_places_are_refused(copy: Path, tmp_path: Path) -> None:
    for name, other in swaps(copy):
        one, two = (copy / name).read_bytes(), (copy / other).read_bytes()
        with (
            changed(copy, name, overwriting(two)),
            changed(copy, other, overwriting(one)),
        ):
            said = refusal(copy, tmp_path / "work", name)
            assert name in said or other in said, f"{other} exchanged with {name}"


@pytest.mark.parametrize("part", ["chk-2", "files", "ledger"])
def test_a_folder_of_another_job_is_refused(copy: Path, tmp_path: Path, part: str) -> None:
    shutil.rmtree(copy / JOB / part)
    shutil.copytree(copy / OTHER / part, copy / JOB / part)
    assert f"{JOB}/{part}" in refusal(copy, tmp_path / "work", f"{JOB}/chk-2/metadata.json")


def test_a_whole_job_under_another_name_is_refused(copy: Path, tmp_path: Path) -> None:
    (copy / JOB).rename(copy / "renamed")
    with pytest.raises(CheckpointCorrupted, match=f"renamed/{LEDGER}/.*belongs to job '{JOB}'"):
        restore(copy, tmp_path / "work", job="renamed")


def test_an_older_state_of_the_same_ledger_is_refused(copy: Path, tmp_path: Path) -> None:
    """As a restored backup of the ledger alone: its end is missing, second names included."""
    newest = sorted(path for path in (copy / JOB / LEDGER).glob("*.json"))[2:]
    for path in newest:
        path.unlink()
        (copy / JOB / TWINS / path.name).unlink()
    assert f"{JOB}/chk-2 is there" in refusal(copy, tmp_path / "work", f"{JOB}/chk-2/metadata.json")


def test_a_ledger_that_is_gone_is_no_new_job_while_checkpoints_are_there(copy: Path, tmp_path: Path) -> None:
    shutil.rmtree(copy / JOB / LEDGER)
    assert f"{JOB}/{LEDGER} lacks entries" in refusal(copy, tmp_path / "work", f"{JOB}/chk-2/metadata.json")


def test_second_names_that_are_gone_or_too_many_are_mended(copy: Path, tmp_path: Path) -> None:
    twins = sorted((copy / JOB / TWINS).iterdir())
    for twin in twins:
        delete(twin)
    (copy / JOB / TWINS / "000000000000.json").write_bytes(b"")
    restore(copy, tmp_path / "work")
    names = {path.name for path in (copy / JOB / LEDGER).glob("*.json")}
    assert {path.name for path in (copy / JOB / TWINS).iterdir()} == names


def test_going_back_to_an_older_checkpoint_takes_a_person_who_names_it(copy: Path, tmp_path: Path) -> None:
    delete(copy / JOB / "chk-2" / "metadata.json")
    for _ in range(2):
        assert f"{JOB}/chk-2/metadata.json" in refusal(copy, tmp_path / "work", f"{JOB}/{LEDGER}/")
    assert restore(copy, tmp_path / "work", restore_from="1")[0] == 1
