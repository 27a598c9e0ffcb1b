"""Which stored files are deleted: what no kept manifest names, and no manifest that is still to come will."""

from __future__ import annotations

from hashlib import sha256

from coordinator.checkpoint import completion_record
from coordinator.ledger import Ledger
from tests.coordinator.kit import JOB, SETTINGS, checkpoint
from twopc.protocol.attempt_facts import AttemptStarted
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.layout import manifest_path, stored_file, subtask_folder
from twopc.protocol.ledger_facts import CheckpointReserved
from twopc.protocol.manifest import Manifest, StoredFile
from twopc.storage.memory import MemoryStore

SUBTASK = SubtaskIndex(0)


class Pruned:
    """A job of one subtask, whose checkpoints keep one; each stores a file of its own, and may name others."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.ledger = Ledger(JOB, self.store)
        self.ledger.store(AttemptStarted(AttemptId(1), 1, SETTINGS, CheckpointId(0), 0))

    def put(self, number: int, *also: str) -> str:
        """Store a snapshot; return its own file."""
        own = stored_file(checkpoint(number), SUBTASK, "3f", "000001.sst")
        self.store.put([(own, b"data")])
        # RocksDB's names differ, as its numbers grow.
        files = [StoredFile(own, 4, sha256(b"data").hexdigest())]
        files += [StoredFile(name, 4, sha256(b"data").hexdigest()) for name in also]
        self.store.create_once(manifest_path(checkpoint(number), SUBTASK), Manifest(tuple(files), 1).encode())
        return own

    def reserve(self, number: int, *forgotten: int) -> None:
        ids = tuple(checkpoint(each) for each in forgotten)
        self.ledger.store(CheckpointReserved(checkpoint(number), AttemptId(1), CheckpointKind.PERIODIC, ids))

    def complete(self, number: int) -> None:
        digest = sha256(self.store.get(manifest_path(checkpoint(number), SUBTASK))).hexdigest()
        state = StateHandle(subtask_folder(checkpoint(number), SUBTASK), digest, 4, 1)
        snapshot = SubtaskSnapshot(SUBTASK, {}, state)
        metadata = CheckpointMetadata(
            JOB, checkpoint(number), AttemptId(1), 1, CheckpointKind.PERIODIC, 0, 0, (snapshot,)
        )
        self.ledger.store(metadata)
        self.ledger.store(completion_record(metadata))

    @property
    def files(self) -> set[str]:
        return set(self.store.names("files/"))


def named(number: int, name: str) -> str:
    return stored_file(checkpoint(number), SUBTASK, "3f", name)


def test_a_file_lives_as_long_as_a_kept_manifest_names_it() -> None:
    job = Pruned()
    job.reserve(1)
    shared = named(1, "000009.sst")
    job.store.put([(shared, b"data")])
    first = job.put(1, shared)
    job.complete(1)
    job.reserve(2)
    second = job.put(2, shared)
    job.complete(2)
    job.reserve(3, 1)
    job.ledger.prune()
    assert job.files == {shared, second}
    assert first not in job.files


def test_what_an_upload_that_goes_on_has_stored_is_kept() -> None:
    job = Pruned()
    for number in (1, 2):
        job.reserve(number)
        job.put(number)
        job.complete(number)
    job.reserve(3, 1)
    job.store.put([(named(3, "000003.sst"), b"data")])
    job.ledger.prune()
    assert named(3, "000003.sst") in job.files


def test_what_a_snapshot_after_the_newest_checkpoint_names_is_kept_though_that_one_is_not_completed() -> None:
    """Its subtask may have named it there already, and will in the next."""
    job = Pruned()
    job.reserve(1)
    old = named(1, "000009.sst")
    job.store.put([(old, b"data")])
    job.put(1, old)
    job.complete(1)
    job.reserve(2)
    job.put(2)
    job.complete(2)
    job.reserve(3, 1)
    job.put(3, old)
    job.ledger.prune()
    assert old in job.files


def test_what_crashes_left_of_older_checkpoints_is_deleted() -> None:
    job = Pruned()
    job.reserve(1)
    job.store.put([(named(1, "000009.sst"), b"half")])
    job.reserve(2)
    kept = job.put(2)
    job.complete(2)
    job.ledger.prune()
    assert job.files == {kept}


def test_nothing_is_deleted_while_a_kept_manifest_can_not_be_read() -> None:
    job = Pruned()
    for number in (1, 2):
        job.reserve(number)
        job.put(number)
        job.complete(number)
    before = job.files
    job.store.data[manifest_path(checkpoint(2), SUBTASK)] = b"rotten"
    after_a_restart = Ledger(JOB, job.store)
    after_a_restart.store(CheckpointReserved(checkpoint(3), AttemptId(1), CheckpointKind.PERIODIC, (checkpoint(1),)))
    after_a_restart.prune()
    assert job.files == before


def test_what_was_read_before_it_was_acknowledged_is_not_read_again() -> None:
    job = Pruned()
    job.reserve(1)
    shared = named(1, "000009.sst")
    job.store.put([(shared, b"data")])
    job.put(1, shared)
    job.complete(1)
    job.reserve(2)
    second = job.put(2, shared)
    job.complete(2)
    del job.store.data[manifest_path(checkpoint(2), SUBTASK)]
    job.reserve(3, 1)
    job.ledger.prune()
    assert job.files == {shared, second}
