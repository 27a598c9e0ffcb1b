"""What a store that waits for a server does several at once: reads and deletions of a ledger and its checkpoints."""

from __future__ import annotations

import threading
from hashlib import sha256

import pytest

from coordinator.ledger import Ledger
from tests.storage.memory_bucket import MemoryBucket
from twopc.protocol.attempt_facts import AttemptStarted
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.layout import manifest_path, stored_file, subtask_folder
from twopc.protocol.ledger_facts import CheckpointReserved
from twopc.protocol.manifest import Manifest, StoredFile
from twopc.storage.object_store import ObjectStore


class Meeting:
    """Requests that wait for each other, so many at a time; `most` is how many were in work at once."""

    def __init__(self, size: int) -> None:
        self._together = threading.Barrier(size)
        self._lock = threading.Lock()
        self._in_work = 0
        self.most = 0

    def take_part(self) -> None:
        with self._lock:
            self._in_work += 1
            self.most = max(self.most, self._in_work)
        self._together.wait(30)
        with self._lock:
            self._in_work -= 1


class MeetingBucket(MemoryBucket):
    """Its reads, or its deletions, meet."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Meeting | None = None
        self.deletions: Meeting | None = None

    def get(self, name: str) -> bytes:
        if self.reads is not None:
            self.reads.take_part()
        return super().get(name)

    def delete(self, name: str) -> None:
        if self.deletions is not None:
            self.deletions.take_part()
        super().delete(name)


@pytest.fixture
def bucket() -> MeetingBucket:
    return MeetingBucket()


@pytest.fixture
def store(bucket: MeetingBucket) -> ObjectStore:
    return ObjectStore(bucket, "job/")


def started(number: int) -> AttemptStarted:
    return AttemptStarted(AttemptId(number), 1, CheckpointSettings(1_000, 60_000), NO_CHECKPOINT, 0)


def stored(store: ObjectStore) -> Ledger:
    """A ledger of twice as many entries as the store handles at once."""
    ledger = Ledger("job", store)
    ledger.store(started(1))
    for number in range(1, 2 * store.at_once):
        ledger.store(CheckpointReserved(CheckpointId(number), AttemptId(1), CheckpointKind.PERIODIC))
    return ledger


def test_the_entries_of_a_ledger_are_read_several_at_once(store: ObjectStore, bucket: MeetingBucket) -> None:
    ledger = stored(store)
    bucket.reads = Meeting(store.at_once)
    assert Ledger("job", store).state == ledger.state
    assert bucket.reads.most == store.at_once


def test_entries_that_are_summed_up_are_deleted_several_at_once(store: ObjectStore, bucket: MeetingBucket) -> None:
    ledger = stored(store)
    bucket.deletions = Meeting(store.at_once)
    ledger.store(started(2))
    assert bucket.deletions.most == store.at_once
    bucket.deletions = None
    assert store.names("ledger/") == ["ledger/000000000009.json"]
    assert Ledger("job", store).state == ledger.state


def test_the_manifests_that_subtasks_have_acknowledged_are_looked_at_several_at_once(
    store: ObjectStore, bucket: MeetingBucket
) -> None:
    ledger = stored(store)
    newest, subtasks = ledger.state.last_reserved, 2 * store.at_once
    states = [state_of(store, newest, SubtaskIndex(index)) for index in range(subtasks)]
    snapshots = tuple(SubtaskSnapshot(SubtaskIndex(index), {}, state) for index, state in enumerate(states))
    metadata = CheckpointMetadata("job", newest, AttemptId(1), subtasks, CheckpointKind.PERIODIC, 0, 0, snapshots)
    bucket.reads = Meeting(store.at_once)
    ledger.store(metadata)
    assert bucket.reads.most == store.at_once


def state_of(store: ObjectStore, checkpoint_id: CheckpointId, subtask: SubtaskIndex) -> StateHandle:
    """Store a snapshot of one file."""
    (file,) = store.put([(stored_file(checkpoint_id, subtask, "3f", "000001.sst"), b"data")])
    manifest = Manifest((StoredFile(file.name, file.size_bytes, file.sha256),), 1).encode()
    store.create_once(manifest_path(checkpoint_id, subtask), manifest)
    return StateHandle(subtask_folder(checkpoint_id, subtask), sha256(manifest).hexdigest(), 4, 1)
