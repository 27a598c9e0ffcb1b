"""What a snapshot costs as the state grows: it follows what changed, not what there is.

    python benchmarks/state_size.py [--megabytes 10 100 1000] [--changed 100 1000 10000 100000] [--json FILE]

One subtask's real state backend and checkpoint storage, without Kafka or Spark: RocksDB with 100-byte values. Then
come snapshots, each after so many random keys were written anew; of a few RocksDB itself writes none. `take` fixes the
state, on the data loop, and writes it beside the loop where RocksDB does; `store` brings it into the checkpoint folder;
`new MB` is what the snapshot wrote that the one before didn't have.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from twopc.protocol.facts import SplitPosition
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.runtime.state import LocalSnapshot, SubtaskStore
from twopc.state.backend import Family
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.local import LocalStore

VALUE_BYTES = 100
CHUNK = 10_000
SUBTASK = SubtaskIndex(0)


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians over the snapshots of one state and one amount of change."""

    state_mb: float
    keys_changed: int
    take_ms: float
    store_ms: float
    new_mb: float
    snapshot_mb: float


def key(number: int) -> bytes:
    return b"in-0-count-%012d" % number


def fill(backend: RocksDBBackend, keys: int) -> None:
    """Write so many keys."""
    rng = random.Random(0)
    for first in range(0, keys, CHUNK):
        chunk = range(first, min(keys, first + CHUNK))
        backend.put_many(Family.KEYED, [(key(number), rng.randbytes(VALUE_BYTES)) for number in chunk])


def inodes(folder: Path) -> dict[int, int]:
    """Return the size of every file under a folder, by what it is on disk."""
    return {path.stat().st_ino: path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def measure(megabytes: int, changed: int, snapshots: int, folder: Path) -> Cost:
    """Fill, then change and take snapshots."""
    keys = megabytes * 1_000_000 // (VALUE_BYTES + len(key(0)))
    backend = RocksDBBackend.open_fresh(folder / "work")
    (folder / "checkpoints").mkdir()
    store = SubtaskStore(SUBTASK, backend, SnapshotStore(LocalStore(folder / "checkpoints")), folder, inline_bytes=0)
    fill(backend, keys)
    whole = store.take(CheckpointId(1), ())
    assert isinstance(whole, LocalSnapshot)
    store.write(whole)
    store.put(whole)
    rng = random.Random(1)
    rows = []
    for number in range(2, snapshots + 2):
        chosen = [rng.randrange(keys) for _ in range(changed)]
        for first in range(0, changed, CHUNK):
            backend.put_many(
                Family.KEYED, [(key(each), rng.randbytes(VALUE_BYTES)) for each in chosen[first : first + CHUNK]]
            )
        before = inodes(folder / "checkpoints")
        position = SplitPosition("in[0]", 0, [number, "topic-id"])
        started = time.perf_counter()
        taken = store.take(CheckpointId(number), (position,))
        assert isinstance(taken, LocalSnapshot)
        store.write(taken)
        took = time.perf_counter()
        handle = store.put(taken)
        stored = time.perf_counter()
        new = {inode: size for inode, size in inodes(folder / "checkpoints").items() if inode not in before}
        rows.append(((took - started) * 1e3, (stored - took) * 1e3, sum(new.values()) / 1e6, handle.size_bytes / 1e6))
    backend.close()
    medians = [statistics.median(column) for column in zip(*rows, strict=True)]
    return Cost(megabytes, changed, *medians)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[10, 100, 1_000])
    parser.add_argument("--changed", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000])
    parser.add_argument("--snapshots", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    costs = []
    print(f"{'state MB':>9}{'changed':>9}{'take ms':>9}{'store ms':>10}{'new MB':>9}{'snapshot MB':>13}")
    for megabytes in options.megabytes:
        for changed in options.changed:
            with tempfile.TemporaryDirectory(prefix="twopc-state-") as folder:
                cost = measure(megabytes, changed, options.snapshots, Path(folder))
            costs.append(cost)
            print(
                f"{cost.state_mb:>9,}{cost.keys_changed:>9,}{cost.take_ms:>9.1f}{cost.store_ms:>10.1f}"
                f"{cost.new_mb:>9.2f}{cost.snapshot_mb:>13.1f}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps([asdict(cost) for cost in costs], indent=1) + "\n")


if __name__ == "__main__":
    main()
