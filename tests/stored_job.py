"""A job's checkpoint folder as a coordinator and its subtasks leave it, without either: ledger, metadata, snapshots."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path

from coordinator.checkpoint import completion_record
from coordinator.ledger import Ledger
from twopc.protocol.attempt_facts import AttemptEnded, AttemptStarted
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, Committable, SplitPosition, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.layout import LEDGER, entry_name, manifest_of, subtask_folder
from twopc.protocol.ledger_facts import CheckpointCompleted, CheckpointReserved, CommittablesConfirmed, LossSettled
from twopc.protocol.ledger_place import NOTHING_BEFORE, LedgerPlace
from twopc.protocol.ledger_state import encode_entry
from twopc.protocol.manifest import Manifest
from twopc.protocol.times import SubtaskTimes
from twopc.state.backend import Family
from twopc.state.keyed import KeyedState
from twopc.state.layout import StateName, state_prefix
from twopc.state.memory import MemoryBackend
from twopc.state.positions import write_positions
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.local import LocalStore

JOB = "flights"
TRIGGERED_MS = 1_700_000_000_000
SHARED = b"an SST file that every snapshot holds" * 20


class StoredJob:
    """Two subtasks, one input partition and one transaction each; `checkpoint` completes the next checkpoint.

    `times` are what its subtasks say of their parts; without any it is as an earlier version left it.
    """

    times: tuple[SubtaskTimes, ...] = (
        SubtaskTimes(8.5, 12.0, 20.0, 200.0, 215),
        SubtaskTimes(7.5, 11.0, 21.0, 230.0, 250),
    )

    def __init__(self, root: Path, job: str = JOB, *, keyed: Mapping[str, Mapping[bytes, bytes]] | None = None) -> None:
        """With `keyed`, each snapshot is RocksDB's, with this state in the subtask's partition."""
        self._keyed = keyed
        self.root = root
        self.job = job
        self.folder = root / job
        self.ledger = Ledger(job, LocalStore(self.folder))
        self._storage = SnapshotStore(LocalStore(self.folder))
        self._local = root.parent / f"local-of-{job}"
        self.attempt = self.ledger.state.current
        if not self.attempt:
            self.start()

    def copied_to(self, root: Path) -> StoredJob:
        """The same in another checkpoint folder, byte by byte."""
        shutil.copytree(self.folder, root / self.job)
        return StoredJob(root, self.job)

    def start(self, restored: int = 0) -> None:
        self.attempt = AttemptId(self.attempt + 1)
        settings = CheckpointSettings(1_000, 60_000)
        self.ledger.store(AttemptStarted(self.attempt, 2, settings, CheckpointId(restored), TRIGGERED_MS))

    def end(self) -> None:
        self.ledger.store(AttemptEnded(self.attempt, True, "stopped"))

    def checkpoint(
        self, kind: CheckpointKind = CheckpointKind.PERIODIC, label: str = "", *, confirmed: bool = True
    ) -> CheckpointId:
        number = CheckpointId(self.ledger.state.last_reserved + 1)
        self.ledger.store(CheckpointReserved(number, self.attempt, kind))
        metadata = CheckpointMetadata(
            job=self.job,
            checkpoint_id=number,
            attempt=self.attempt,
            parallelism=2,
            kind=kind,
            triggered_ms=TRIGGERED_MS,
            acknowledged_ms=TRIGGERED_MS + 250,
            snapshots=(self._snapshot(0, number), self._snapshot(1, number)),
            label=label,
            times=self.times,
        )
        self.ledger.store(metadata)
        self.ledger.store(completion_record(metadata))
        if confirmed:
            names = tuple(item.name for item in metadata.committables)
            self.ledger.store(CommittablesConfirmed(number, names, TRIGGERED_MS + 253, TRIGGERED_MS + 270))
        return number

    def forget(self, *numbers: CheckpointId) -> None:
        """What retention does."""
        next_id = CheckpointId(self.ledger.state.last_reserved + 1)
        self.ledger.store(CheckpointReserved(next_id, self.attempt, CheckpointKind.PERIODIC, numbers))
        self.ledger.prune()

    def heal(self, number: CheckpointId, subtask: int, base: CheckpointId) -> None:
        """Have this subtask of an unconfirmed checkpoint restored from an earlier one."""
        bases = ((SubtaskIndex(subtask), base),)
        self.ledger.store(LossSettled(number, self.attempt, (name_of(subtask, number),), bases, "lost", 0))

    def rewrite_ledger(self, record: CheckpointCompleted) -> None:
        """Exchange the completion record of the newest checkpoint, as one who may write to the folder could."""
        state = self.ledger.state
        newest = replace(state.completed[-1], record=record)
        for path in (self.folder / LEDGER).rglob("*.json"):
            path.unlink()
        summary = replace(state, completed=(*state.completed[:-1], newest))
        (self.folder / LEDGER / entry_name(1)).write_bytes(
            encode_entry(summary, LedgerPlace(self.job, 1, NOTHING_BEFORE, "me"))
        )

    def _snapshot(self, subtask: int, number: CheckpointId) -> SubtaskSnapshot:
        index, local = SubtaskIndex(subtask), self._local / f"{number}-{subtask}"
        position = SplitPosition(f"in[{subtask}]", subtask, [100 * number + subtask, "topic-id"])
        if self._keyed is None:
            self._write_files(local, f"{number}-{subtask}")
        else:
            self._write_state(local, position, self._keyed)
        return SubtaskSnapshot.of(
            subtask=index,
            positions=(position,),
            state=self._storage.put(number, index, local, key_count=10),
            committables=(Committable(name_of(subtask, number), number, index, {"producer_id": 7}),),
        )

    def _write_files(self, local: Path, text: str) -> None:
        local.mkdir(parents=True)
        shared = self._local / "shared"
        if not shared.exists():
            shared.write_bytes(SHARED)
        (local / "000001.sst").hardlink_to(shared)
        (local / "000002.sst").write_bytes(text.encode() * 50)
        (local / "MANIFEST-000003").write_bytes(f"manifest of {text}".encode() * 5)

    def _write_state(self, local: Path, position: SplitPosition, keyed: Mapping[str, Mapping[bytes, bytes]]) -> None:
        self._local.mkdir(parents=True, exist_ok=True)
        backend = RocksDBBackend.open_fresh(local.with_name(f"{local.name}-open"))
        write_positions(backend, [position])
        for name, values in keyed.items():
            prefix = state_prefix(StateName.parse(name), position.partition)
            backend.put_many(Family.KEYED, [(prefix + key, value) for key, value in values.items()])
        backend.snapshot(local)
        backend.close()


def name_of(subtask: int, number: int) -> str:
    """The name of a subtask's transaction for a checkpoint."""
    return f"txn-{subtask}-{number}"


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder, with its digest."""
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


class SmallJob(StoredJob):
    """The same, whose subtasks keep so little state that it stands in the metadata."""

    def _snapshot(self, subtask: int, number: CheckpointId) -> SubtaskSnapshot:
        index, backend = SubtaskIndex(subtask), MemoryBackend()
        position = SplitPosition(f"in[{subtask}]", subtask, [100 * number + subtask, "topic-id"])
        write_positions(backend, [position])
        KeyedState(backend).put_many(StateName.parse("count"), position.partition, [b"LGA"], [b"%d" % number])
        whole = backend.changes()
        return SubtaskSnapshot.of(
            subtask=index,
            positions=(position,),
            state=StateHandle.inline(subtask_folder(number, index), whole.items, whole.size_bytes, 1),
            committables=(Committable(name_of(subtask, number), number, index, {"producer_id": 7}),),
        )


def stored_path(job_folder: Path, place: str) -> Path:
    """Where a file of a snapshot is: `chk-3/subtask-1/000012.sst`, as a pattern too; `manifest.json` lists them all.

    Of several that match, one that was first stored for this checkpoint.
    """
    snapshot, _, name = place.rpartition("/")
    manifest = job_folder / manifest_of(snapshot)
    if name == "manifest.json":
        return manifest
    contents = Manifest.decode(manifest.read_bytes(), place)
    own = f"files/{snapshot.partition('/')[0].removeprefix('chk-')}-"
    matching = [file.stored for file in contents.files if fnmatch(file.name, name)]
    return job_folder / min(matching, key=lambda stored: (not stored.startswith(own), stored))


def stored_files(job_folder: Path, snapshot: str) -> dict[str, Path]:
    """Where the files of a snapshot are, by the names that the state gives them."""
    contents = Manifest.decode((job_folder / manifest_of(snapshot)).read_bytes(), snapshot)
    return {file.name: job_folder / file.stored for file in contents.files}
