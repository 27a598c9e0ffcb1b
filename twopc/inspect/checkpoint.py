"""A completed checkpoint, opened to look at: what it says of its subtasks, and the state that they stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from types import TracebackType
from typing import Any

from twopc.checkpoints.archive import opened
from twopc.checkpoints.reference import LocatedCheckpoint
from twopc.checkpoints.times import CheckpointTimes, times_of
from twopc.errors import ConfigurationError
from twopc.inspect.entry import StateEntry
from twopc.inspect.snapshots import OpenSnapshots
from twopc.inspect.state import Address, State, addressed_entries, names_of
from twopc.partition_groups import owner
from twopc.protocol.facts import CheckpointMetadata, SplitPosition, SubtaskSnapshot, in_order
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.serde import Serde
from twopc.state.layout import StateName
from twopc.storage.open import open_store
from twopc.storage.store import CheckpointStore


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction that was pre-committed for a checkpoint; `outcome` is confirmed, outstanding or lost."""

    name: str
    subtask: SubtaskIndex
    checkpoint_id: CheckpointId
    outcome: str
    payload: Mapping[str, Any]


class Checkpoint:
    """Made by `open_checkpoint`; close it, or use it in a with statement. State is opened when it is first asked for.

    It shows what is stored: where a restore would have a subtask write lost output again, from an older checkpoint, the
    state here is still that of this one.
    """

    def __init__(
        self, located: LocatedCheckpoint, metadata: CheckpointMetadata, serdes: Mapping[str, Serde], closing: ExitStack
    ) -> None:
        self.metadata = metadata
        self._located = located
        self._snapshots = OpenSnapshots(located, metadata, serdes)
        self._closing = closing
        closing.callback(self._snapshots.close)

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove what was linked, copied or unpacked to look at it."""
        self._closing.close()

    @property
    def job(self) -> str:
        return self.metadata.job

    @property
    def checkpoint_id(self) -> CheckpointId:
        return self.metadata.checkpoint_id

    @property
    def attempt(self) -> AttemptId:
        return self.metadata.attempt

    @property
    def store(self) -> CheckpointStore:
        """The store of its job, this checkpoint among it."""
        return self._located.store

    @property
    def place(self) -> str:
        """The place where it is stored, for people."""
        return self._located.entry.place

    @property
    def subtasks(self) -> tuple[SubtaskSnapshot, ...]:
        """The snapshot that each subtask acknowledged."""
        return self.metadata.snapshots

    @property
    def positions(self) -> tuple[SplitPosition, ...]:
        """The position of each split of the input."""
        return tuple(in_order(self.metadata.positions))

    @property
    def times(self) -> CheckpointTimes:
        """The time of each of its phases, and how long each subtask's part took."""
        return times_of(self.metadata, self._located.entry.completed)

    @property
    def transactions(self) -> tuple[Transaction, ...]:
        """The transactions that were pre-committed and not yet committed when it was taken, and their fate since."""
        return tuple(
            Transaction(
                committable.name,
                committable.subtask,
                committable.checkpoint_id,
                self._outcome(committable.name),
                committable.payload,
            )
            for committable in self.metadata.committables
        )

    @cached_property
    def states(self) -> tuple[str, ...]:
        """The names of all states: those that have a key, and those that the job declares.

        A state is named as its operator is; where that has a state of another name, operator/state.
        """
        return tuple(sorted(map(str, set().union(*map(names_of, self._snapshots.all())))))

    def state(self, name: str) -> State:
        """Return one state; raise ConfigurationError, listing those that there are, if there is none of this name."""
        known = self.states
        if name not in known:
            listed = ", ".join(known) or "none"
            raise ConfigurationError(
                f"checkpoint {self.checkpoint_id} of job {self.job!r} has no state {name!r}; it has: {listed}"
            )
        numbers = {held.partition for held in self.metadata.positions}
        owners = {number: owner(number, len(self.subtasks)) for number in numbers}
        return State(StateName.parse(name), self._snapshots, owners)

    def serde(self, name: str) -> Serde | None:
        """Return how a state is encoded; None if neither the checkpoint nor the caller has said so."""
        known = (snapshot.serde(StateName.parse(name)) for snapshot in self._snapshots.all())
        return next((serde for serde in known if serde is not None), None)

    def entries(self, state: str | None = None) -> Iterator[StateEntry]:
        """Yield all that is stored, or all of one state: by operator, partition, state and key, as it is stored."""
        return (entry for _, entry in self.addressed_entries(state))

    def addressed_entries(self, state: str | None = None) -> Iterator[tuple[Address, StateEntry]]:
        """Yield the same with the address of each, by which two checkpoints are compared."""
        return addressed_entries(self._snapshots, None if state is None else StateName.parse(state))

    def _outcome(self, name: str) -> str:
        if any(name in loss.names for loss in self._located.entry.losses):
            return "lost"
        return "confirmed" if name in self._located.entry.confirmed else "outstanding"


def open_checkpoint(
    reference: str | int | PathLike[str] = "latest",
    *,
    checkpoint_dir: str | PathLike[str] = "checkpoints",
    job: str | None = None,
    serdes: Mapping[str, Serde] | None = None,
) -> Checkpoint:
    """Open a completed checkpoint to look at: an id, a label, "latest", or the path of a checkpoint, copy or archive.

    `job` may be left out where the checkpoint folder holds one only. `serdes` says how states are encoded, by name,
    where the checkpoint doesn't say it or is wrong. Raises CheckpointCorrupted, naming each file, for what is damaged.
    """
    named = str(reference) if isinstance(reference, int) else fspath(reference)
    with ExitStack() as closing:
        located = closing.enter_context(opened(named, open_store(checkpoint_dir), job))
        return Checkpoint(located, located.metadata, serdes or {}, closing.pop_all())
