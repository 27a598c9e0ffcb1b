"""A store of snapshots whose disk is at the test's command, with files as RocksDB makes them, but without RocksDB."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.stored_job import stored_files
from twopc.protocol.facts import StateHandle
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.local import LocalStore

SUBTASK = SubtaskIndex(0)


@dataclass
class Store:
    """A store of snapshots, and a worker's folder with files as RocksDB makes them: SSTs, which stay, and others."""

    root: Path
    local: Path

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True)
        self.storage = SnapshotStore(LocalStore(self.root))

    def snapshot(self, number: int) -> Path:
        """Take snapshot `number`: one new SST, those of the snapshots before, and files that are written anew."""
        folder = self.local / str(number)
        folder.mkdir(parents=True)
        for each in range(1, number + 1):
            sst = self.local / f"{each:06d}.sst"
            if not sst.exists():
                sst.write_bytes(b"%d" % each * 500)
            (folder / sst.name).hardlink_to(sst)
        (folder / "MANIFEST-1").write_bytes(b"manifest of %d" % number)
        (folder / "CURRENT").write_bytes(b"MANIFEST-1\n")
        return folder

    def put(self, number: int, folder: Path) -> StateHandle:
        return self.storage.put(CheckpointId(number), SUBTASK, folder, number)

    def put_changes(self, number: int, written: bytes) -> StateHandle:
        """Put what was written since snapshot 1."""
        return self.storage.put_changes(CheckpointId(number), SUBTASK, CheckpointId(1), written, number)

    def fetched(self, handle: StateHandle, name: str) -> dict[str, bytes]:
        into = self.local / name
        SnapshotStore(LocalStore(self.root)).fetch(handle, into)
        return contents(into)

    def names(self) -> list[str]:
        """The snapshots that are there."""
        return sorted(path.relative_to(self.root).as_posix() for path in self.root.glob("chk-*/*"))

    def stored(self, number: int) -> dict[str, bytes] | None:
        """What a snapshot holds, None if it is not there."""
        if not (self.root / f"chk-{number}" / "subtask-0.json").exists():
            return None
        return {name: path.read_bytes() for name, path in stored_files(self.root, f"chk-{number}/subtask-0").items()}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
