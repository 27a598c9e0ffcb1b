"""The facts that are stored about a checkpoint, as frozen values that turn into JSON and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from twopc.protocol.canonical import canonical
from twopc.protocol.checkpoints import CheckpointKind
from twopc.protocol.codec import from_name, to_json
from twopc.protocol.envelope import encode_fact
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.layout import manifest_of
from twopc.protocol.times import SubtaskTimes


@dataclass(frozen=True, slots=True)
class Committable:
    """Names one pre-committed transaction: all that another process needs to commit it.

    `payload` belongs to the sink that made it (for Kafka: `twopc.kafka.transactions.committable`): nobody else looks
    inside.
    `group` is the id of its sink's transaction group; it stands in the snapshot, not in the stored committable.
    `is_global` says that the group's global committer commits it, `is_sole` that the job had no other group.
    """

    name: str
    checkpoint_id: CheckpointId
    subtask: SubtaskIndex
    payload: Mapping[str, Any]
    group: str = from_name()
    is_global: bool = field(default=False, compare=False)
    is_sole: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class KnownOutput:
    """An output (of Kafka: a topic) as the writer of a sink knew it, for the next start to compare with what is there.

    `facts` is any JSON value of the sink's own. `group` is the id of the sink's transaction group; it stands in the
    snapshot, not in the stored fact.
    """

    name: str
    facts: Any = field(hash=False)
    group: str = from_name()


@dataclass(frozen=True, slots=True)
class StateHandle:
    """The place of one subtask's stored state. Only the snapshot store, and `Manifest`, look further than this says.

    `path` is its place, relative to the job's store. Its files are in a manifest, of which the digest is known; or it
    is so small that it has none, and `items` is all of it, which belongs to the state backend (`twopc.state.changes`).
    """

    path: str
    manifest_sha256: str
    size_bytes: int
    key_count: int
    items: Mapping[str, Any] | None = field(default=None, hash=False)

    @classmethod
    def inline(cls, path: str, items: Mapping[str, Any], size_bytes: int, key_count: int) -> StateHandle:
        """Return a handle that holds the state itself."""
        return cls(path, "", size_bytes, key_count, items)

    @property
    def manifest(self) -> str | None:
        """The name of its manifest; None if nothing of it is stored beside the metadata."""
        return manifest_of(self.path) if self.items is None else None


@dataclass(frozen=True, slots=True)
class SplitPosition:
    """The position of a subtask in a split; `partition` is the number of the split's partition group.

    `position` is any JSON value of the source's own, and only the source compares two of them. People are shown it as
    it is, and of a list the first element: what only the source needs stands behind that. `source` is the source's
    operator id; it stands in the snapshot, not in the stored position.
    """

    AS_LIST: ClassVar[bool] = True

    split: str
    partition: int
    position: Any = field(hash=False)
    source: str = from_name()

    def __str__(self) -> str:
        return f"{self.split}@{position_text(self.position)}"


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
class OperatorPart:
    """The part of a snapshot that one operator stored: of a source its splits with positions, of a sink committables.

    A sink's are all that this subtask has pre-committed and not yet committed, those of aborted checkpoints included;
    and what it knew of its outputs, which earlier versions stored in committables, or not at all.
    """

    splits: tuple[SplitPosition, ...] = ()
    committables: tuple[Committable, ...] = ()
    outputs: tuple[KnownOutput, ...] = ()


@dataclass(frozen=True, slots=True)
class SubtaskSnapshot:
    """The snapshot of one subtask for one checkpoint: the contents of its acknowledgement.

    `parts` has what belongs to each source, by operator id, and to each transaction group of sinks, by its id; the
    state of all operators is one `state`. `finished` says that the subtask's bounded input was read to the end.
    `base` is the checkpoint with which the first of the committables' transactions began: everything that this subtask
    wrote before it is committed. 0 if there is none, or no single one, because the subtask was put together from
    several.
    """

    subtask: SubtaskIndex
    parts: Mapping[str, OperatorPart] = field(hash=False)
    state: StateHandle
    finished: bool = False
    base: CheckpointId = CheckpointId(0)  # noqa: RUF009  a NewType call is a constant

    @classmethod
    def of(
        cls,
        subtask: SubtaskIndex,
        positions: Iterable[SplitPosition],
        state: StateHandle,
        committables: Iterable[Committable],
        finished: bool = False,
        base: CheckpointId = CheckpointId(0),  # noqa: B008  a NewType call is a constant
        outputs: Iterable[KnownOutput] = (),
    ) -> SubtaskSnapshot:
        """Return the snapshot in which each of these belongs to the operator that it names."""
        splits, items, known = list(positions), list(committables), list(outputs)
        named = [
            *(held.source for held in splits),
            *(item.group for item in items),
            *(output.group for output in known),
        ]
        parts = {
            operator: OperatorPart(
                tuple(held for held in splits if held.source == operator),
                tuple(item for item in items if item.group == operator),
                tuple(output for output in known if output.group == operator),
            )
            for operator in dict.fromkeys(named)
        }
        return cls(subtask, parts, state, finished, base)

    @property
    def positions(self) -> tuple[SplitPosition, ...]:
        """The position of every split of every source."""
        return tuple(held for part in self.parts.values() for held in part.splits)

    @property
    def committables(self) -> tuple[Committable, ...]:
        """Every pre-committed transaction of every sink."""
        return tuple(item for part in self.parts.values() for item in part.committables)

    @property
    def outputs(self) -> tuple[KnownOutput, ...]:
        """Every output as its sink's writer knew it."""
        return tuple(output for part in self.parts.values() for output in part.outputs)


@dataclass(frozen=True, slots=True)
class CheckpointMetadata:
    """The metadata of one checkpoint, enough for a restore: one snapshot per subtask. Times are Unix milliseconds.

    `label` is its requester's name for it. `times` has one for each snapshot; none where an earlier version of
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
            object.__setattr__(self, "_stored", encode_fact(self.KIND, to_json(self)))
        return self._stored

    @property
    def committables(self) -> tuple[Committable, ...]:
        """All pre-committed transactions of this checkpoint, oldest checkpoint first."""
        every = [committable for snapshot in self.snapshots for committable in snapshot.committables]
        return tuple(sorted(every, key=lambda committable: (committable.checkpoint_id, committable.subtask)))

    @property
    def positions(self) -> tuple[SplitPosition, ...]:
        return tuple(position for snapshot in self.snapshots for position in snapshot.positions)

    @property
    def outputs(self) -> tuple[KnownOutput, ...]:
        """Every output once for each transaction group, though every subtask knows it."""
        every = {(output.group, output.name): output for snapshot in self.snapshots for output in snapshot.outputs}
        return tuple(every.values())
