"""The durable facts of one job, as frozen values; each is written once and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from twopc.protocol.attempt_facts import AttemptEnded, AttemptStarted, StopRequested
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.planned_starts import StartsPlanned

METADATA_KIND = CheckpointMetadata.KIND


@dataclass(frozen=True, slots=True)
class CheckpointReserved:
    """This id is taken, and all below it, whatever becomes of them. The `forgotten` checkpoints are no longer kept."""

    KIND: ClassVar[str] = "checkpoint-reserved"

    checkpoint_id: CheckpointId
    attempt: AttemptId
    kind: CheckpointKind
    forgotten: tuple[CheckpointId, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "checkpoint_id": self.checkpoint_id,
            "attempt": self.attempt,
            "kind": self.kind,
            "forgotten": list(self.forgotten),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> CheckpointReserved:
        return cls(
            checkpoint_id=CheckpointId(int(body["checkpoint_id"])),
            attempt=AttemptId(int(body["attempt"])),
            kind=CheckpointKind(body["kind"]),
            forgotten=tuple(CheckpointId(int(forgotten)) for forgotten in body["forgotten"]),
        )


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

    def to_json(self) -> dict[str, Any]:
        return {
            "checkpoint_id": self.checkpoint_id,
            "attempt": self.attempt,
            "kind": self.kind,
            "metadata_sha256": self.metadata_sha256,
            "committables": [list(names) for names in self.committables],
            "label": self.label,
            "triggered_ms": self.triggered_ms,
            "acknowledged_ms": self.acknowledged_ms,
            "size_bytes": self.size_bytes,
            "global_committables": list(self.global_committables),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> CheckpointCompleted:
        return cls(
            checkpoint_id=CheckpointId(int(body["checkpoint_id"])),
            attempt=AttemptId(int(body["attempt"])),
            kind=CheckpointKind(body["kind"]),
            metadata_sha256=str(body["metadata_sha256"]),
            committables=tuple(tuple(str(name) for name in names) for names in body["committables"]),
            label=str(body.get("label", "")),
            triggered_ms=int(body.get("triggered_ms", 0)),
            acknowledged_ms=int(body.get("acknowledged_ms", 0)),
            size_bytes=int(body.get("size_bytes", 0)),
            global_committables=tuple(str(name) for name in body.get("global_committables", ())),
        )


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

    def to_json(self) -> dict[str, Any]:
        return {
            "checkpoint_id": self.checkpoint_id,
            "names": list(self.names),
            "completed_ms": self.completed_ms,
            "confirmed_ms": self.confirmed_ms,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> CommittablesConfirmed:
        return cls(
            checkpoint_id=CheckpointId(int(body["checkpoint_id"])),
            names=tuple(str(name) for name in body["names"]),
            completed_ms=int(body.get("completed_ms", 0)),
            confirmed_ms=int(body.get("confirmed_ms", 0)),
        )


@dataclass(frozen=True, slots=True)
class LossSettled:
    """What was decided about output of a completed checkpoint that is lost. Durable before the evidence is destroyed.

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

    def to_json(self) -> dict[str, Any]:
        return {
            "checkpoint_id": self.checkpoint_id,
            "attempt": self.attempt,
            "names": list(self.names),
            "bases": [list(pair) for pair in self.bases],
            "message": self.message,
            "decided_ms": self.decided_ms,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> LossSettled:
        return cls(
            checkpoint_id=CheckpointId(int(body["checkpoint_id"])),
            attempt=AttemptId(int(body["attempt"])),
            names=tuple(str(name) for name in body["names"]),
            bases=tuple((SubtaskIndex(int(subtask)), CheckpointId(int(base))) for subtask, base in body["bases"]),
            message=str(body["message"]),
            decided_ms=int(body["decided_ms"]),
        )


@dataclass(frozen=True, slots=True)
class CheckpointsDisposed:
    """A person let go of these checkpoints: they are no longer kept from here on."""

    KIND: ClassVar[str] = "checkpoints-disposed"

    forgotten: tuple[CheckpointId, ...]

    def to_json(self) -> dict[str, Any]:
        return {"forgotten": list(self.forgotten)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> CheckpointsDisposed:
        return cls(tuple(CheckpointId(int(forgotten)) for forgotten in body["forgotten"]))


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
"""What is appended to the ledger."""

Fact = CheckpointMetadata | Entry
"""What the coordinator stores; metadata has a file of its own."""

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
