"""The contents of a checkpoint store, for tools: read only, safe beside a running coordinator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.protocol.completed_checkpoint import CompletedCheckpoint
from twopc.protocol.facts import CheckpointMetadata, SplitPosition
from twopc.protocol.healing import restored_from
from twopc.protocol.history import History
from twopc.protocol.ids import AttemptId, CheckpointId, checked_name
from twopc.protocol.layout import ENTRIES, checkpoint_folder, metadata_path
from twopc.protocol.ledger_checks import check_metadata
from twopc.protocol.ledger_facts import LossSettled
from twopc.protocol.ledger_state import LedgerState
from twopc.storage.store import CheckpointStore, has_ledger, jobs_in
from twopc.storage.stored_ledger import read_ledger
from twopc.storage.transfers import side_by_side

T = TypeVar("T")

_READS = 100
"""Of a reader that is starved beside a job with short intervals, most may be in vain."""


@dataclass(frozen=True, slots=True)
class CheckpointEntry:
    """One completed checkpoint, as the ledger knows it, and its metadata.

    `metadata` is None where it can't be trusted any more; then `damage` says why. `place` is where it is, for people.
    """

    completed: CompletedCheckpoint
    metadata: CheckpointMetadata | None
    place: str
    damage: str = ""

    @property
    def checkpoint_id(self) -> CheckpointId:
        return self.completed.checkpoint_id

    @property
    def attempt(self) -> AttemptId:
        return self.completed.record.attempt

    @property
    def label(self) -> str:
        """Its requester's name for it."""
        return self.completed.record.label

    @property
    def confirmed(self) -> frozenset[str]:
        """Names of the committables whose commit was confirmed."""
        return self.completed.confirmed

    @property
    def losses(self) -> tuple[LossSettled, ...]:
        """The decisions about lost output of it."""
        return self.completed.losses


_Known = Mapping[str, CheckpointMetadata]
"""By the SHA-256 that a completion record has of it."""


@dataclass(frozen=True, slots=True)
class JobCheckpoints:
    """A job's completed checkpoints, ascending, and what else its ledger says."""

    job: str
    state: LedgerState
    completed: tuple[CheckpointEntry, ...]

    @property
    def attempt(self) -> AttemptId:
        """The latest attempt, 0 if it never ran."""
        return self.state.current


def read_job(root: CheckpointStore, job: str, before: JobCheckpoints | None = None) -> JobCheckpoints:
    """Read the ledger and every kept checkpoint of a job; raise ConfigurationError if there is no such job here.

    A running coordinator writes and prunes while we read; what doesn't fit together for that is read again. What
    `before` has of a checkpoint is taken from there: it never changes, and damage since then is not seen.
    """
    store = _existing(root, job)
    entries = () if before is None else before.completed
    known = {entry.completed.record.metadata_sha256: entry.metadata for entry in entries if entry.metadata is not None}
    return _read_beside(store, lambda: _read(store, job, known), _is_undamaged)


def _existing(root: CheckpointStore, job: str) -> CheckpointStore:
    store = root.within(checked_name("job", job))
    if not has_ledger(store):
        known = ", ".join(jobs_in(root)) or "none"
        raise ConfigurationError(f"no job {job!r} in the checkpoint folder {root.place()}; jobs there: {known}")
    return store


def _read_beside(store: CheckpointStore, read: Callable[[], T], is_whole: Callable[[T], bool] = lambda _: True) -> T:
    """Read from a job's store, and again as long as that fails and something there was changed meanwhile.

    What is wrong though nobody changed anything is damage: it is returned, or raised, at once.
    """
    for _ in range(_READS - 1):
        before = _standing(store)
        try:
            found = read()
        except (OSError, CheckpointCorrupted):
            if _standing(store) == before:
                raise
        else:
            if is_whole(found) or _standing(store) == before:
                return found
    return read()


def _standing(store: CheckpointStore) -> tuple[list[str], list[str], list[str]]:
    """All that a coordinator adds to, or deletes from: ids grow for ever, so no name comes back."""
    return store.parts(), store.names(ENTRIES), list(store.lost(ENTRIES))


def _is_undamaged(found: JobCheckpoints) -> bool:
    return not any(entry.damage for entry in found.completed)


def latest_attempt(root: CheckpointStore, job: str) -> AttemptId | None:
    """The latest attempt that a job's ledger tells of, beside a running coordinator; None where there is no ledger."""
    store = root.within(job)
    if not has_ledger(store):
        return None
    return _read_beside(store, lambda: read_ledger(store, job).state).current


def read_history(root: CheckpointStore, job: str) -> History:
    """Return what a job's ledger remembers, beside a running coordinator; raise ConfigurationError if it has none."""
    store = _existing(root, job)
    return _read_beside(store, lambda: read_ledger(store, job).state).history


def is_kept(root: CheckpointStore, job: str, checkpoint_id: CheckpointId) -> bool:
    """Whether a checkpoint that was there is there still: a running job keeps its newest ones, and savepoints."""
    return any(entry.checkpoint_id == checkpoint_id for entry in read_job(root, job).completed)


def positions_of_kept(root: CheckpointStore, job: str) -> list[SplitPosition]:
    """Return the positions of all checkpoints that are kept; raise CheckpointCorrupted where one's are not known."""
    positions: list[SplitPosition] = []
    for entry in read_job(root, job).completed:
        if entry.metadata is None:
            raise CheckpointCorrupted(entry.damage)
        positions += entry.metadata.positions
    return positions


def _read(store: CheckpointStore, job: str, known: _Known) -> JobCheckpoints:
    state = read_ledger(store, job).state
    entries = side_by_side(partial(_entry, store, job, known), state.completed, store.at_once)
    return JobCheckpoints(job, state, tuple(entries))


def _entry(store: CheckpointStore, job: str, known: _Known, completed: CompletedCheckpoint) -> CheckpointEntry:
    name = metadata_path(completed.checkpoint_id)
    metadata, damage = known.get(completed.record.metadata_sha256), ""
    try:
        if metadata is None:
            metadata = check_metadata(job, completed.record, store.get(name))
    except FileNotFoundError:
        damage = f"{job}/{name} is missing, while the ledger names it"
    except CheckpointCorrupted as error:
        damage = str(error)
    return CheckpointEntry(completed, metadata, store.place(checkpoint_folder(completed.checkpoint_id)), damage)


def find_checkpoint(found: JobCheckpoints, checkpoint_id: CheckpointId) -> CheckpointEntry:
    """Return one checkpoint; raise ConfigurationError, listing those that exist, if it is not there."""
    for entry in found.completed:
        if entry.checkpoint_id == checkpoint_id:
            return entry
    known = ", ".join(str(entry.checkpoint_id) for entry in found.completed) or "none"
    raise ConfigurationError(f"job {found.job!r} has no completed checkpoint {checkpoint_id}; completed: {known}")


def restorable(found: JobCheckpoints, entry: CheckpointEntry) -> CheckpointMetadata:
    """Return what restoring a checkpoint restores: healed subtasks stand where they write their output again.

    Raises CheckpointCorrupted if its metadata, or that of a checkpoint that it can't be restored without, is damaged.
    """
    if entry.metadata is None:
        raise CheckpointCorrupted(entry.damage)
    earlier = [each.metadata for each in found.completed if each.metadata is not None]
    return restored_from(entry.metadata, entry.completed.bases, earlier)
