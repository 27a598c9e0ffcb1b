"""Snapshots changed in one respect."""

from __future__ import annotations

from collections.abc import Iterable

from twopc.protocol.facts import Committable, SplitPosition, SubtaskSnapshot


def changed(
    snapshot: SubtaskSnapshot,
    *,
    positions: Iterable[SplitPosition] | None = None,
    committables: Iterable[Committable] | None = None,
) -> SubtaskSnapshot:
    """Return the snapshot with other positions, or other committables."""
    return SubtaskSnapshot.of(
        snapshot.subtask,
        snapshot.positions if positions is None else positions,
        snapshot.state,
        snapshot.committables if committables is None else committables,
        snapshot.finished,
        snapshot.base,
    )
