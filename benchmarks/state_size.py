"""What a checkpoint costs as the state grows: it follows what changed, not what there is.

    python benchmarks/state_size.py [--megabytes 0 10 100 1000] [--changed 100 1000 10000 100000] [--json FILE]
                                    [--store s3://BUCKET/PREFIX]

One subtask's real state backend and checkpoint storage, and the coordinator's ledger, in one process, without Kafka or
Spark: RocksDB with 100-byte values. Then come checkpoints, each after so many random keys were written anew; of a few
RocksDB itself writes no file. Of 0 MB the state is a few keys, which stand in the metadata. `take` fixes the state, on
the data loop, and writes it beside the loop where RocksDB does; `store` brings it into the checkpoint store; `ledger`
is what the coordinator stores, looks at and deletes for the checkpoint. `puts`, `reads` (listings too) and `deletions`
are what both ask of the store, a name or a listing each: a bucket is sent one request for each, and for a file that is
larger than 8 MB one for each part. `new MB` is what was stored that the checkpoint before didn't have. The store is a
folder, or any that `--checkpoint-dir` may name.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from coordinator.checkpoint import completion_record
from coordinator.ledger import Ledger
from twopc.config import RunSettings
from twopc.protocol.attempt_facts import AttemptStarted
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata, SplitPosition, StateHandle, SubtaskSnapshot
from twopc.protocol.ids import NO_CHECKPOINT, AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.ledger_facts import CheckpointReserved, CommittablesConfirmed
from twopc.runtime.state import LocalSnapshot, SubtaskStore
from twopc.state.backend import Family
from twopc.state.rocksdb import RocksDBBackend
from twopc.state.snapshot_store import SnapshotStore
from twopc.storage.open import open_store
from twopc.storage.store import CheckpointStore, Content, OpenObject, StoredObject

VALUE_BYTES = 100
CHUNK = 10_000
STATELESS_KEYS = 50
RETAINED = 3
JOB, SUBTASK, ATTEMPT = "state-size", SubtaskIndex(0), AttemptId(1)


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians over the checkpoints of one state and one amount of change."""

    state_mb: float
    keys_changed: int
    take_ms: float
    store_ms: float
    ledger_ms: float
    puts: float
    reads: float
    deletions: float
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


@dataclass(slots=True)
class Asked:
    """The requests that a store was sent."""

    puts: int = 0
    reads: int = 0
    deletions: int = 0
    bytes_stored: int = 0


class CountingStore(CheckpointStore):
    """The store that is given, with all of its parts counted as one."""

    def __init__(self, store: CheckpointStore, asked: Asked) -> None:
        self._store = store
        self._asked = asked
        self.at_once = store.at_once

    def within(self, part: str) -> CheckpointStore:
        return CountingStore(self._store.within(part), self._asked)

    def establish(self) -> None:
        self._store.establish()

    def create_once(self, name: str, data: bytes) -> None:
        self._store.create_once(name, data)
        self._asked.puts += 1
        self._asked.bytes_stored += len(data)

    def put(self, files: Iterable[tuple[str, Content]]) -> list[StoredObject]:
        stored = self._store.put(files)
        self._asked.puts += len(stored)
        self._asked.bytes_stored += sum(each.size_bytes for each in stored)
        return stored

    def get(self, name: str) -> bytes:
        self._asked.reads += 1
        return self._store.get(name)

    def open(self, name: str) -> AbstractContextManager[OpenObject]:
        self._asked.reads += 1
        return self._store.open(name)

    def bring(self, name: str, target: Path) -> None:
        self._asked.reads += 1
        self._store.bring(name, target)

    def names(self, prefix: str = "") -> list[str]:
        self._asked.reads += 1
        return self._store.names(prefix)

    def parts(self) -> list[str]:
        self._asked.reads += 1
        return self._store.parts()

    def delete(self, names: Iterable[str]) -> None:
        self._store.delete(self._counted(names))

    def delete_unordered(self, names: Iterable[str]) -> None:
        self._store.delete_unordered(self._counted(names))

    def _counted(self, names: Iterable[str]) -> list[str]:
        counted = list(names)
        self._asked.deletions += len(counted)
        return counted

    def sweep(self, prefix: str) -> None:
        self._store.sweep(prefix)

    def place(self, name: str = "") -> str:
        return self._store.place(name)

    @property
    def identity(self) -> str:
        return self._store.identity


class Checkpoints:
    """A job of one subtask, whose checkpoints are reserved, stored, completed, confirmed and forgotten."""

    def __init__(self, store: CheckpointStore, subtask: SubtaskStore) -> None:
        self._subtask = subtask
        self._ledger = Ledger(JOB, store)
        self._ledger.store(AttemptStarted(ATTEMPT, 1, CheckpointSettings(1_000, 60_000), NO_CHECKPOINT, 0))

    def take(self, number: int) -> tuple[StateHandle, tuple[float, float, float]]:
        """Take one; return its handle, and the milliseconds of taking, of storing, and of the ledger."""
        started = time.perf_counter()
        taken = self._subtask.take(CheckpointId(number), (SplitPosition("in[0]", 0, [number, "topic-id"]),))
        if isinstance(taken, LocalSnapshot):
            self._subtask.write(taken)
        took = time.perf_counter()
        handle = self._subtask.put(taken) if isinstance(taken, LocalSnapshot) else taken
        stored = time.perf_counter()
        self._complete(CheckpointId(number), handle)
        completed = time.perf_counter()
        return handle, ((took - started) * 1e3, (stored - took) * 1e3, (completed - stored) * 1e3)

    def _complete(self, number: CheckpointId, handle: StateHandle) -> None:
        forgotten = (CheckpointId(number - RETAINED),) if number > RETAINED else ()
        self._ledger.store(CheckpointReserved(number, ATTEMPT, CheckpointKind.PERIODIC, forgotten))
        snapshot = SubtaskSnapshot(SUBTASK, {}, handle)
        metadata = CheckpointMetadata(JOB, number, ATTEMPT, 1, CheckpointKind.PERIODIC, 0, 0, (snapshot,))
        self._ledger.store(metadata)
        self._ledger.store(completion_record(metadata))
        self._ledger.store(CommittablesConfirmed(number, (), 0, 0))
        self._ledger.prune()
        self._ledger.compact()


def measure(megabytes: int, changed: int, checkpoints: int, folder: Path, where: CheckpointStore) -> Cost:
    """Fill, then change and take checkpoints."""
    keys = megabytes * 1_000_000 // (VALUE_BYTES + len(key(0))) or STATELESS_KEYS
    backend = RocksDBBackend.open_fresh(folder / "work")
    asked = Asked()
    store = CountingStore(where, asked)
    store.establish()
    inline_bytes = 0 if megabytes else RunSettings().checkpoint_inline_bytes
    job = Checkpoints(store, SubtaskStore(SUBTASK, backend, SnapshotStore(store), folder, inline_bytes))
    fill(backend, keys)
    for number in range(1, RETAINED + 1):
        job.take(number)
    rng = random.Random(1)
    rows = []
    for number in range(RETAINED + 1, RETAINED + 1 + checkpoints):
        chosen = [rng.randrange(keys) for _ in range(changed)]
        for first in range(0, changed, CHUNK):
            backend.put_many(
                Family.KEYED, [(key(each), rng.randbytes(VALUE_BYTES)) for each in chosen[first : first + CHUNK]]
            )
        asked.puts = asked.reads = asked.deletions = asked.bytes_stored = 0
        handle, times = job.take(number)
        counts = (asked.puts, asked.reads, asked.deletions, asked.bytes_stored / 1e6)
        rows.append((*times, *counts, handle.size_bytes / 1e6))
    backend.close()
    medians = [statistics.median(column) for column in zip(*rows, strict=True)]
    return Cost(megabytes, changed, *medians)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[0, 10, 100, 1_000])
    parser.add_argument("--changed", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000])
    parser.add_argument("--checkpoints", type=int, default=9)
    parser.add_argument("--store", default="", help="the checkpoint store; a temporary folder unless given")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    costs = []
    heads = f"{'state MB':>9}{'changed':>9}{'take ms':>9}{'store ms':>10}{'ledger ms':>11}{'puts':>6}{'reads':>7}"
    print(f"{heads}{'deletions':>11}{'new MB':>9}{'snapshot MB':>13}")
    for megabytes in options.megabytes:
        for changed in options.changed:
            with tempfile.TemporaryDirectory(prefix="twopc-state-") as folder:
                store = open_store(options.store or f"{folder}/checkpoints").within(Path(folder).name)
                cost = measure(megabytes, changed, options.checkpoints, Path(folder), store)
                store.delete(store.names())
            costs.append(cost)
            print(
                f"{cost.state_mb:>9,}{cost.keys_changed:>9,}{cost.take_ms:>9.1f}{cost.store_ms:>10.1f}"
                f"{cost.ledger_ms:>11.1f}{cost.puts:>6.0f}{cost.reads:>7.0f}{cost.deletions:>11.0f}"
                f"{cost.new_mb:>9.2f}{cost.snapshot_mb:>13.1f}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps([asdict(cost) for cost in costs], indent=1) + "\n")


if __name__ == "__main__":
    main()
