"""What a checkpoint store holds, for tools: read only, safe beside a running coordinator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from twopc.errors import CheckpointCorrupted, ConfigurationError
from twopc.protocol.completed import CompletedCheckpoint
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.healing import restored_from
from twopc.protocol.ids import AttemptId, CheckpointId, checked_name
from twopc.protocol.layout import LEDGER, checkpoint_folder, entry_path, entry_sequences, metadata_path
from twopc.protocol.ledger_checks import check_metadata, refuse_lost_entries, refuse_unknown_checkpoints
from twopc.protocol.ledger_facts import LossSettled
from twopc.protocol.ledger_state import LedgerState, replay
from twopc.storage.store import CheckpointStore, has_ledger, jobs_in

_ENTRIES = f"{LEDGER}/"

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
        """What whoever asked for it called it."""
        return self.completed.record.label

    @property
    def confirmed(self) -> frozenset[str]:
        """Names of the committables whose commit was confirmed."""
        return self.completed.confirmed

    @property
    def losses(self) -> tuple[LossSettled, ...]:
        """What was decided about output of it that is lost."""
        return self.completed.losses


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


def read_job(root: CheckpointStore, job: str) -> JobCheckpoints:
    """Read the ledger and every kept checkpoint of a job; raise ConfigurationError if there is no such job here.

    A running coordinator writes and prunes while we read; what doesn't fit together for that is read again.
    """
    store = root.within(checked_name("job", job))
    if not has_ledger(store):
        known = ", ".join(jobs_in(root)) or "none"
        raise ConfigurationError(f"no job {job!r} in the checkpoint folder {root.place()}; jobs there: {known}")
    return _read_beside(store, lambda: _read(store, job), _is_undamaged)


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
    return store.parts(), store.names(_ENTRIES), list(store.lost(_ENTRIES))


def _is_undamaged(found: JobCheckpoints) -> bool:
    return not any(entry.damage for entry in found.completed)


def latest_attempt(root: CheckpointStore, job: str) -> AttemptId | None:
    """The latest attempt that a job's ledger tells of, beside a running coordinator; None where there is no ledger."""
    store = root.within(job)
    if not has_ledger(store):
        return None
    return _read_beside(store, lambda: _replay(store, job)).current


def is_kept(root: CheckpointStore, job: str, checkpoint_id: CheckpointId) -> bool:
    """Whether a checkpoint that was there is there still: a running job keeps its newest ones, and savepoints."""
    return any(entry.checkpoint_id == checkpoint_id for entry in read_job(root, job).completed)


def _read(store: CheckpointStore, job: str) -> JobCheckpoints:
    state = _replay(store, job)
    return JobCheckpoints(job, state, tuple(_entry(store, job, each) for each in state.completed))


def _entry(store: CheckpointStore, job: str, completed: CompletedCheckpoint) -> CheckpointEntry:
    name = metadata_path(completed.checkpoint_id)
    metadata, damage = None, ""
    try:
        metadata = check_metadata(job, completed.record, store.get(name))
    except FileNotFoundError:
        damage = f"{job}/{name} is missing, while the ledger names it"
    except CheckpointCorrupted as error:
        damage = str(error)
    return CheckpointEntry(completed, metadata, store.place(checkpoint_folder(completed.checkpoint_id)), damage)


def _replay(store: CheckpointStore, job: str) -> LedgerState:
    # Before the entries: whoever stores something for a checkpoint does so after its id is stored.
    parts, lost = store.parts(), store.lost(_ENTRIES)
    numbers = entry_sequences(store.names(_ENTRIES))
    refuse_lost_entries(numbers, lost, job)
    state = replay({number: store.get(entry_path(number)) for number in numbers}, job, f"{job}/{LEDGER}")
    refuse_unknown_checkpoints(state, parts, job)
    return state


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
