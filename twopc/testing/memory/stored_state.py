"""The state by key that a checkpoint in memory holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twopc.serde import Serde
from twopc.state.backend import Family
from twopc.state.entry_keys import Entry, by_key
from twopc.state.forms import ListOf, MapOf
from twopc.state.key_form import key_bytes
from twopc.state.layout import StateName, parse_keyed_key
from twopc.state.memory import MemoryBackend
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.memory import MemoryStore
from twopc.testing.memory.coordinator import newest_checkpoint


def stored_state(
    job: str, store: MemoryStore, scratch: Path, state: StateName, serde: Serde, key: Any
) -> dict[int, bytes]:
    """Return what the newest completed checkpoint has under this name for this key, by partition number.

    It is opened in a folder of its own in `scratch`.
    """
    wanted = key_bytes(key)
    stored: defaultdict[int, list[Entry]] = defaultdict(list)
    for stored_key, raw in _keyed(job, store, scratch):
        name, partition, own = parse_keyed_key(stored_key)
        if name == state:
            stored[partition].append((own, raw))
    if isinstance(serde, ListOf | MapOf):
        every = {number: dict(by_key(entries)) for number, entries in stored.items()}
        return {number: serde.gathered(keys[wanted]) for number, keys in every.items() if wanted in keys}
    return {number: raw for number, entries in stored.items() for own, raw in entries if own == wanted}


def _keyed(job: str, store: MemoryStore, scratch: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield all state by key of all subtasks."""
    metadata = newest_checkpoint(job, store)
    storage = SnapshotStore(store.within(job))
    for snapshot in () if metadata is None else metadata.snapshots:
        with TemporaryDirectory(dir=scratch) as folder:
            storage.fetch(snapshot.state, Path(folder) / "state")
            yield from MemoryBackend.open_restored(Path(folder) / "state").scan(Family.KEYED)
