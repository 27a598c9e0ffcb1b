"""The state by key that a checkpoint in memory holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twopc.serde import Serde
from twopc.state.backend import Family
from twopc.state.key_form import key_bytes
from twopc.state.layout import StateName
from twopc.state.memory import MemoryBackend
from twopc.state.snapshot_store import SnapshotStore
from twopc.state.whole_states import stored_by_entry, whole_states
from twopc.storage.memory import MemoryStore
from twopc.testing.memory.coordinator import newest_checkpoint


def stored_state(
    job: str, store: MemoryStore, scratch: Path, state: StateName, serde: Serde, key: Any
) -> dict[int, bytes]:
    """Return what the newest completed checkpoint has under this name for this key, by partition number.

    It is opened in a folder of its own in `scratch`.
    """
    wanted, by_entry = key_bytes(key), stored_by_entry({state: serde})
    stored = sorted(_keyed(job, store, scratch))
    return {at.partition: raw for at, raw in whole_states(stored, by_entry) if (at.state, at.key) == (state, wanted)}


def _keyed(job: str, store: MemoryStore, scratch: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield all state by key of all subtasks."""
    metadata = newest_checkpoint(job, store)
    storage = SnapshotStore(store.within(job))
    for snapshot in () if metadata is None else metadata.snapshots:
        with TemporaryDirectory(dir=scratch) as folder:
            storage.fetch(snapshot.state, Path(folder) / "state")
            yield from MemoryBackend.open_restored(Path(folder) / "state").scan(Family.KEYED)
