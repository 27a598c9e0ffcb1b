"""What is stored about a checkpoint, as frozen values that turn into JSON and back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from twopc.protocol.canonical import canonical
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.envelope import encode_fact
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.times import SubtaskTimes


@dataclass(frozen=True, slots=True)
class Committable:
    """Names one pre-committed transaction: all that another process needs to commit it.

    `payload` belongs to the sink that made it (for Kafka: `twopc.kafka.committable`); the protocol never looks inside.
    """

    name: str
    checkpoint_id: CheckpointId
    subtask: SubtaskIndex
    payload: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "checkpoint_id": self.checkpoint_id,
            "subtask": self.subtask,
            "payload": dict(self.payload),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Committable:
        return cls(
            name=str(body["name"]),
            checkpoint_id=CheckpointId(int(body["checkpoint_id"])),
            subtask=SubtaskIndex(int(body["subtask"])),
            payload=dict(body["payload"]),
        )


@dataclass(frozen=True, slots=True)
class StateHandle:
    """Where one subtask's stored state is, relative to the job's checkpoint folder, and the digest of its manifest."""

    path: str
    manifest_sha256: str
    size_bytes: int
    key_count: int

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "manifest_sha256": self.manifest_sha256,
            "size_bytes": self.size_bytes,
            "key_count": self.key_count,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> StateHandle:
        return cls(
            path=str(body["path"]),
            manifest_sha256=str(body["manifest_sha256"]),
            size_bytes=int(body["size_bytes"]),
            key_count=int(body["key_count"]),
        )


@dataclass(frozen=True, slots=True)
class InlineState:
    """One subtask's state itself, where it is so small that it stands in the metadata and needs no files.

    `path` is where its files would be. `items` belongs to the state backend (`twopc.state.changes`); the protocol never
    looks inside.
    """

    path: str
    items: Mapping[str, Any]
    size_bytes: int
    key_count: int

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "items": dict(self.items),
            "size_bytes": self.size_bytes,
            "key_count": self.key_count,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> InlineState:
        return cls(
            path=str(body["path"]),
            items=dict(body["items"]),
            size_bytes=int(body["size_bytes"]),
            key_count=int(body["key_count"]),
        )


def _state_from_json(body: Mapping[str, Any]) -> StateHandle | InlineState:
    return InlineState.from_json(body) if "items" in body else StateHandle.from_json(body)


@dataclass(frozen=True, slots=True)
class SplitPosition:
    """How far a subtask has read a split of a source; `partition` is the number of the split's partition group.

    `position` is any JSON value of the source's own, and only the source compares two of them. People are shown it as
    it is, and of a list the first element: what only the source needs stands behind that.
    """

    split: str
    partition: int
    position: Any = field(hash=False)

    def __str__(self) -> str:
        return f"{self.split}@{position_text(self.position)}"

    def to_json(self) -> list[Any]:
        return [self.split, self.partition, self.position]

    @classmethod
    def from_json(cls, body: Sequence[Any]) -> SplitPosition:
        split, partition, position = body
        return cls(str(split), int(partition), position)


def in_order(positions: Iterable[SplitPosition]) -> list[SplitPosition]:
    """Return positions as people are shown them: by partition group, then by split."""
    return sorted(positions, key=lambda held: (held.partition, held.split))


def shown_position(position: Any) -> Any:
    """Return the part of a position that people are shown, as a value of JSON."""
    return position[0] if isinstance(position, list) and position else position


def position_text(position: Any) -> str:
    """Return what people are shown of a position."""
    shown = shown_position(position)
    return shown if isinstance(shown, str) else canonical(shown).decode()


@dataclass(frozen=True, slots=True)
class SubtaskSnapshot:
    """What one subtask stored for one checkpoint: the contents of its acknowledgement.

    `committables` holds every transaction that this subtask has pre-committed and not yet committed, those of aborted
    checkpoints included. `finished` says that its bounded input was read to the end. `base` is the checkpoint with
    which the first of these transactions began: everything that this subtask wrote before it is committed. 0 if there
    is none, or no single one, because the subtask was put together from several.
    """

    subtask: SubtaskIndex
    positions: tuple[SplitPosition, ...]
    state: StateHandle | InlineState
    committables: tuple[Committable, ...]
    finished: bool = False
    base: CheckpointId = CheckpointId(0)  # noqa: RUF009  a NewType call is a constant

    def concerns(self, subtask: SubtaskIndex, splits: Collection[str]) -> bool:
        """Say whether this subtask, if it reads these, is restored from it."""
        return self.subtask == subtask or any(position.split in splits for position in self.positions)

    def to_json(self) -> dict[str, Any]:
        return {
            "subtask": self.subtask,
            "positions": [position.to_json() for position in self.positions],
            "state": self.state.to_json(),
            "committables": [committable.to_json() for committable in self.committables],
            "finished": self.finished,
            "base": self.base,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> SubtaskSnapshot:
        return cls(
            subtask=SubtaskIndex(int(body["subtask"])),
            positions=tuple(SplitPosition.from_json(item) for item in body["positions"]),
            state=_state_from_json(body["state"]),
            committables=tuple(Committable.from_json(item) for item in body["committables"]),
            finished=bool(body["finished"]),
            base=CheckpointId(int(body.get("base", 0))),
        )


@dataclass(frozen=True, slots=True)
class CheckpointMetadata:
    """All that a restore of one checkpoint needs: one snapshot per subtask. Times are Unix milliseconds.

    `label` is what whoever asked for it called it. `times` has one for each snapshot; none where an earlier version of
    this program took the checkpoint.
    """

    KIND: ClassVar[str] = "checkpoint-metadata"

    job: str
    checkpoint_id: CheckpointId
    attempt: AttemptId
    parallelism: int
    kind: CheckpointKind
    triggered_ms: int
    acknowledged_ms: int
    snapshots: tuple[SubtaskSnapshot, ...]
    label: str = ""
    times: tuple[SubtaskTimes, ...] = ()
    _stored: bytes = field(default=b"", init=False, repr=False, compare=False)

    @property
    def stored(self) -> bytes:
        """Its stored form, made once: of many subtasks it is megabytes, and both the digest and the file need it."""
        if not self._stored:
            object.__setattr__(self, "_stored", encode_fact(self.KIND, self.to_json()))
        return self._stored

    @property
    def committables(self) -> tuple[Committable, ...]:
        """All pre-committed transactions of this checkpoint, oldest checkpoint first."""
        every = [committable for snapshot in self.snapshots for committable in snapshot.committables]
        return tuple(sorted(every, key=lambda committable: (committable.checkpoint_id, committable.subtask)))

    @property
    def positions(self) -> tuple[SplitPosition, ...]:
        return tuple(position for snapshot in self.snapshots for position in snapshot.positions)

    def to_json(self) -> dict[str, Any]:
        return {
            "job": self.job,
            "checkpoint_id": self.checkpoint_id,
            "attempt": self.attempt,
            "parallelism": self.parallelism,
            "kind": self.kind,
            "triggered_ms": self.triggered_ms,
            "acknowledged_ms": self.acknowledged_ms,
            "snapshots": [snapshot.to_json() for snapshot in self.snapshots],
            "label": self.label,
            "times": [each.to_json() for each in self.times],
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> CheckpointMetadata:
        return cls(
            job=str(body["job"]),
            checkpoint_id=CheckpointId(int(body["checkpoint_id"])),
            attempt=AttemptId(int(body["attempt"])),
            parallelism=int(body["parallelism"]),
            kind=CheckpointKind(body["kind"]),
            triggered_ms=int(body["triggered_ms"]),
            acknowledged_ms=int(body["acknowledged_ms"]),
            snapshots=tuple(SubtaskSnapshot.from_json(item) for item in body["snapshots"]),
            label=str(body.get("label", "")),
            times=tuple(SubtaskTimes.from_json(item) for item in body.get("times", ())),
        )
