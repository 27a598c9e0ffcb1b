"""The durable facts of one job, as frozen values; each is written once and never changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from twopc.protocol.attempt_facts import AttemptEnded, AttemptStarted, StopRequested
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.outcomes import AbortedCheckpoint
from twopc.protocol.planned_starts import StartsPlanned

METADATA_KIND = CheckpointMetadata.KIND


@dataclass(frozen=True, slots=True)
class CheckpointReserved:
    """This id is taken, and all below it, whatever becomes of them. The `forgotten` checkpoints are no longer kept.

    For people: when, in Unix milliseconds, and which checkpoints were `aborted` since the last fact that says so.
    """

    KIND: ClassVar[str] = "checkpoint-reserved"

    checkpoint_id: CheckpointId
    attempt: AttemptId
    kind: CheckpointKind
    forgotten: tuple[CheckpointId, ...] = ()
    reserved_ms: int = 0
    aborted: tuple[AbortedCheckpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointCompleted:
    """The completion record: from here on the checkpoint is completed. `committables` holds names, by subtask.

    `global_committables` are those names among them that a global committer commits. `label`, times (Unix milliseconds)
    and size repeat what the metadata says, for lists.
    """

    KIND: ClassVar[str] = "checkpoint-completed"

    checkpoint_id: CheckpointId
    attempt: AttemptId
    kind: CheckpointKind
    metadata_sha256: str
    committables: tuple[tuple[str, ...], ...]
    label: str = ""
    triggered_ms: int = 0
    acknowledged_ms: int = 0
    size_bytes: int = 0
    global_committables: tuple[str, ...] = ()

    def names_of(self, subtask: SubtaskIndex) -> frozenset[str]:
        """Names of the committables of one subtask."""
        return frozenset(self.committables[subtask] if subtask < len(self.committables) else ())


@dataclass(frozen=True, slots=True)
class CommittablesConfirmed:
    """The transactions with these names, of this checkpoint or of earlier ones, are committed: where a global committer
    commits them, by that one.

    Times are Unix milliseconds, for people, and 0 where they are not known: when this checkpoint was completed, so that
    subtasks were told to commit, and when the coordinator stored that they have.
    """

    KIND: ClassVar[str] = "committables-confirmed"

    checkpoint_id: CheckpointId
    names: tuple[str, ...]
    completed_ms: int = 0
    confirmed_ms: int = 0


@dataclass(frozen=True, slots=True)
class LossSettled:
    """The decision about output of a completed checkpoint that is lost. Durable before the evidence is destroyed.

    The subtasks in `bases` are restored from those earlier checkpoints, whenever this one is restored, and write it
    again. Without any, a person has accepted the loss: also of what an earlier fact had them write again. `message` is
    the audit: what is lost, and why.
    """

    KIND: ClassVar[str] = "loss-settled"

    checkpoint_id: CheckpointId
    attempt: AttemptId
    names: tuple[str, ...]
    bases: tuple[tuple[SubtaskIndex, CheckpointId], ...]
    message: str
    decided_ms: int


@dataclass(frozen=True, slots=True)
class CheckpointsDisposed:
    """A person let go of these checkpoints: they are no longer kept from here on."""

    KIND: ClassVar[str] = "checkpoints-disposed"

    forgotten: tuple[CheckpointId, ...]


Entry = (
    AttemptStarted
    | CheckpointReserved
    | CheckpointCompleted
    | CommittablesConfirmed
    | LossSettled
    | StartsPlanned
    | StopRequested
    | CheckpointsDisposed
    | AttemptEnded
)
"""A fact that is appended to the ledger."""

Fact = CheckpointMetadata | Entry
"""A fact that the coordinator stores; metadata has a file of its own."""

ENTRY_TYPES: tuple[type[Entry], ...] = (
    AttemptStarted,
    CheckpointReserved,
    CheckpointCompleted,
    CommittablesConfirmed,
    LossSettled,
    StartsPlanned,
    StopRequested,
    CheckpointsDisposed,
    AttemptEnded,
)
