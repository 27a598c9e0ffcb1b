"""Decides whether lost output can be written again exactly, and from where, by what is stored and was found. Pure.

A subtask's chain depends on no other's, and a transaction holds all the output of its interval or none of it. So where
transactions of subtask i of the latest completed checkpoint n are gone, restoring the subtask's *own* snapshot of a
checkpoint m before them, while the others restore n, writes their output again: once, if nothing else of i was visible.

Invariants, each of which makes the answer Refused:

- what is lost is certainly lost: the broker itself says that it aborted it. Mere lack of evidence is not enough;
- after the first lost transaction of a subtask none that holds output is committed: it would be written twice;
- m is completed and kept, everything that i wrote up to m is committed, and i wrote nothing between m and the first
  lost transaction;
- i read the same splits at m as at n: else state and positions would belong to several subtasks;
- the input of i from its positions at m on is still there.

A transaction without output counts for none of them: it is neither lost nor visible, whatever became of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from twopc.errors import CheckpointCorrupted
from twopc.protocol.facts import CheckpointMetadata, Committable, SplitPosition, SubtaskSnapshot
from twopc.protocol.ids import CheckpointId, SubtaskIndex


class Fate(Enum):
    """The fate of one committable of the latest completed checkpoint."""

    COMMITTED = "committed"
    ABORTED = "aborted by the broker"
    HELD = "still whole, and not committed because an earlier one is gone"
    UNKNOWN = "gone, for all that can be known"
    NO_OUTPUT = "without output"


_IS_WHOLE = (Fate.COMMITTED, Fate.NO_OUTPUT)
"""Of these nothing has to be written again."""


@dataclass(frozen=True, slots=True)
class Healed:
    """Restore these subtasks of the latest completed checkpoint from these earlier ones; `names` is written again."""

    bases: Mapping[SubtaskIndex, CheckpointId]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """It can't be made good exactly; `why` is for people. Where the `input_is_gone`, no earlier checkpoint helps."""

    why: str
    input_is_gone: bool = False


def plan(
    latest: CheckpointMetadata,
    fates: Mapping[str, Fate],
    earlier: Sequence[CheckpointMetadata],
    gone: Mapping[SplitPosition, str],
) -> Healed | Refused:
    """Decide about all that is not committed in `latest`, given the earlier completed checkpoints that are kept.

    `gone` are those of their positions that can't be read from any more, and why, for people.
    """
    bases: dict[SubtaskIndex, CheckpointId] = {}
    names: list[str] = []
    for snapshot in latest.snapshots:
        lost = [item for item in snapshot.committables if fates[item.name] not in _IS_WHOLE]
        if not lost:
            continue
        found = _base(latest, snapshot, fates, earlier, gone)
        if isinstance(found, Refused):
            return found
        bases[snapshot.subtask] = found
        names += [item.name for item in lost]
    return Healed(bases, tuple(names))


def _base(
    latest: CheckpointMetadata,
    snapshot: SubtaskSnapshot,
    fates: Mapping[str, Fate],
    earlier: Sequence[CheckpointMetadata],
    gone: Mapping[SplitPosition, str],
) -> CheckpointId | Refused:
    written = [item for item in snapshot.committables if fates[item.name] is not Fate.NO_OUTPUT]
    # Of one checkpoint those that are lost come first: what other sinks committed of it stands behind a loss.
    ordered = sorted(written, key=lambda item: (item.checkpoint_id, fates[item.name] is Fate.COMMITTED))
    first = next(index for index, item in enumerate(ordered) if fates[item.name] is not Fate.COMMITTED)
    for item in ordered[first:]:
        if fates[item.name] is Fate.COMMITTED:
            return Refused(
                f"what subtask {item.subtask} wrote for checkpoint {item.checkpoint_id} is committed, though "
                f"{ordered[first].name} of it, or before it, is lost"
            )
        if fates[item.name] is Fate.UNKNOWN:
            return Refused(f"nothing proves that {item.name} was aborted, so writing its output again might double it")
    starts_at = ordered[first - 1].checkpoint_id if first else snapshot.base
    mine = _splits(snapshot)
    for candidate in sorted(earlier, key=lambda metadata: metadata.checkpoint_id, reverse=True):
        if not _stands_between(candidate, latest, starts_at, ordered[first]):
            continue
        own = _own(candidate, snapshot.subtask)
        if own is None or _splits(own) != mine:
            return Refused(
                f"subtask {snapshot.subtask} read other splits at checkpoint {candidate.checkpoint_id}, the last "
                f"one before {ordered[first].name}"
            )
        missing = missing_input([own], gone)
        return Refused(missing, input_is_gone=True) if missing else candidate.checkpoint_id
    return Refused(
        f"no checkpoint is kept at which the output of subtask {snapshot.subtask} before "
        f"{ordered[first].name} was complete"
    )


def _stands_between(
    candidate: CheckpointMetadata, latest: CheckpointMetadata, starts_at: CheckpointId, first_lost: Committable
) -> bool:
    """Whether all that the subtask wrote up to this checkpoint is committed, and all after it is lost.

    One of an earlier attempt counts only if the subtask was restored from this very one: others lie on another course.
    """
    if candidate.checkpoint_id == starts_at:
        return True
    return candidate.attempt == latest.attempt and starts_at < candidate.checkpoint_id < first_lost.checkpoint_id


def restored_from(
    latest: CheckpointMetadata, bases: Mapping[SubtaskIndex, CheckpointId], earlier: Sequence[CheckpointMetadata]
) -> CheckpointMetadata:
    """Return the checkpoint to restore: the latest, with the snapshots of healed subtasks from earlier ones.

    Raises CheckpointCorrupted if one of those is not there any more.
    """
    kept = {metadata.checkpoint_id: metadata for metadata in earlier}

    def chosen(snapshot: SubtaskSnapshot) -> SubtaskSnapshot:
        base = bases.get(snapshot.subtask)
        if base is None:
            return snapshot
        own = _own(kept[base], snapshot.subtask) if base in kept else None
        if own is None:
            raise CheckpointCorrupted(
                f"checkpoint {base} of job {latest.job!r} can't be read, while subtask {snapshot.subtask} must be "
                f"restored from it: its transactions of checkpoint {latest.checkpoint_id} were lost"
            )
        return own

    return replace(latest, snapshots=tuple(chosen(snapshot) for snapshot in latest.snapshots))


def missing_input(snapshots: Iterable[SubtaskSnapshot], gone: Mapping[SplitPosition, str]) -> str:
    """Name the input that these can't be replayed from any more; empty where they can."""
    why = [gone[position] for snapshot in snapshots for position in snapshot.positions if position in gone]
    return f"the input that it was made from is gone: {'; '.join(why)}" if why else ""


def _own(metadata: CheckpointMetadata, subtask: SubtaskIndex) -> SubtaskSnapshot | None:
    return next((snapshot for snapshot in metadata.snapshots if snapshot.subtask == subtask), None)


def _splits(snapshot: SubtaskSnapshot) -> frozenset[str]:
    return frozenset(position.split for position in snapshot.positions)
