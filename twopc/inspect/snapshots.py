"""The state of a checkpoint's subtasks, opened to look at.

Invariants:

- A snapshot is opened in a private folder of this process, where it was linked or copied, and verified, by
  `twopc.state.snapshot_store`: nothing in the checkpoint folder is changed, and nothing outside of it read on its word.
- It is opened when it is first asked for, and read only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from twopc.checkpoints.catalog import is_kept
from twopc.checkpoints.reference import LocatedCheckpoint
from twopc.errors import CheckpointCorrupted, ConfigurationError, Unavailable
from twopc.protocol.facts import CheckpointMetadata, SubtaskSnapshot
from twopc.protocol.ids import SubtaskIndex
from twopc.protocol.layout import subtask_folder
from twopc.serde import Serde
from twopc.state.backend import Family
from twopc.state.entry_keys import by_key, entries_prefix, escaped
from twopc.state.forms import ListOf, MapOf
from twopc.state.layout import StateName, state_prefix
from twopc.state.restore import refuse_other_positions, refuse_two_owners
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.serdes import read_by_entry, read_serdes
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.scratch_folder import scratch_folder


@dataclass(frozen=True, slots=True)
class OpenSnapshot:
    """One subtask's state. `declared` is what the job said of its serdes, `given` what the caller says.

    `by_entry` are the states of which each entry of a key is stored by itself.
    """

    subtask: SubtaskIndex
    backend: RocksDBBackend
    declared: Mapping[StateName, Serde | None]
    by_entry: Mapping[StateName, type[ListOf] | type[MapOf]]
    given: Mapping[StateName, Serde]

    def serde(self, state: StateName) -> Serde | None:
        """Return how a state is encoded, None if nobody has said it."""
        return self.given.get(state) or self.declared.get(state)

    def keyed(self, state: StateName, partition: int, prefix: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Yield where each key of a state that begins so is stored, the key and its whole value, in their order."""
        head, form = state_prefix(state, partition), self.by_entry.get(state)
        if form is None:
            for stored, raw in self.backend.scan(Family.KEYED, head + prefix):
                yield stored, stored[len(head) :], raw
            return
        entries = self.backend.scan(Family.KEYED, head + escaped(prefix))
        for key, its in by_key((stored[len(head) :], raw) for stored, raw in entries):
            yield head + entries_prefix(key), key, form.gathered(its)


def _refuse_deleted(located: LocatedCheckpoint, error: Exception) -> None:
    """Raise ConfigurationError if files were missing because the checkpoint was deleted meanwhile."""
    if not is_kept(located.root, located.job, located.checkpoint_id):
        raise ConfigurationError(
            f"checkpoint {located.checkpoint_id} of job {located.job!r} was deleted while it was read: retention keeps "
            "the newest ones. Take a savepoint, which is kept, and read that"
        ) from error


class OpenSnapshots:
    """The snapshots of one checkpoint. Used by one thread; `close` removes what it made."""

    def __init__(self, located: LocatedCheckpoint, metadata: CheckpointMetadata, serdes: Mapping[str, Serde]) -> None:
        refuse_two_owners(metadata.snapshots)
        self._snapshots = {snapshot.subtask: snapshot for snapshot in metadata.snapshots}
        self._places = {subtask: subtask_folder(metadata.checkpoint_id, subtask) for subtask in self._snapshots}
        self._located = located
        self._storage = SnapshotStore(located.store)
        self._serdes = {StateName.parse(name): serde for name, serde in serdes.items()}
        self._closing = ExitStack()
        self._opened: dict[SubtaskIndex, OpenSnapshot] = {}
        self._folder: Path | None = None

    def all(self) -> list[OpenSnapshot]:
        """Every subtask's, ascending."""
        return [self.of(subtask) for subtask in sorted(self._snapshots)]

    def of(self, subtask: SubtaskIndex) -> OpenSnapshot:
        """This subtask's; raise CheckpointCorrupted, naming the file, if it is not what was stored."""
        found = self._opened.get(subtask)
        if found is None:
            found = self._opened[subtask] = self._open(self._snapshots[subtask])
        return found

    def close(self) -> None:
        self._opened.clear()
        self._closing.close()
        self._folder = None

    def _open(self, snapshot: SubtaskSnapshot) -> OpenSnapshot:
        if snapshot.state.path != self._places[snapshot.subtask]:
            raise CheckpointCorrupted(
                f"the metadata names {snapshot.state.path!r} as the place of subtask {snapshot.subtask}, which is "
                f"{self._places[snapshot.subtask]}"
            )
        folder = self._private_folder() / f"subtask-{snapshot.subtask}"
        try:
            self._storage.fetch(snapshot.state, folder)
        except (CheckpointCorrupted, Unavailable) as error:
            _refuse_deleted(self._located, error)
            if isinstance(error, Unavailable):
                raise
            raise self._located.refusal(error) from error
        backend = RocksDBBackend.open_read_only(folder)
        self._closing.callback(backend.close)
        refuse_other_positions(backend, snapshot)
        return OpenSnapshot(snapshot.subtask, backend, read_serdes(backend), read_by_entry(backend), self._serdes)

    def _private_folder(self) -> Path:
        if self._folder is None:
            self._folder = self._closing.enter_context(scratch_folder("inspect"))
        return self._folder
