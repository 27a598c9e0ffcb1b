"""A job's ledger as it is stored: for the coordinator that writes it, and for tools that read beside one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twopc.protocol.layout import ENTRIES, LEDGER, entry_path, entry_sequences
from twopc.protocol.ledger_checks import refuse_lost_entries, refuse_unknown_checkpoints
from twopc.protocol.ledger_state import LedgerState, replay
from twopc.storage.store import CheckpointStore


@dataclass(frozen=True, slots=True)
class StoredLedger:
    """The entries that are there, by number, ascending, and what they say."""

    entries: Mapping[int, bytes]
    state: LedgerState


def read_ledger(store: CheckpointStore, job: str) -> StoredLedger:
    """Read the ledger in a job's store.

    Raises CheckpointCorrupted if an entry, or what the store shows of the job's past, says that something is missing or
    damaged. Beside a writer that, or an OSError, may mean that it was at work meanwhile.
    """
    # Before the entries: whoever stores something for a checkpoint does so after its id is stored.
    parts, lost = store.parts(), store.lost(ENTRIES)
    numbers = entry_numbers(store)
    refuse_lost_entries(numbers, lost, job)
    entries = dict(zip(numbers, store.get_all(map(entry_path, numbers)), strict=True))
    state = replay(entries, job, f"{job}/{LEDGER}")
    refuse_unknown_checkpoints(state, parts, job)
    return StoredLedger(entries, state)


def entry_numbers(store: CheckpointStore) -> list[int]:
    """Return the numbers of the entries in a job's store, ascending."""
    return entry_sequences(store.names(ENTRIES))
