"""Which seconds have checkpoints, where seconds with and without are compared within one run."""

from __future__ import annotations


def has_checkpoints(second: int) -> bool:
    """Whether checkpoints are taken in this second of the monotonic clock."""
    return second % 2 == 1


def in_turn(due: float) -> float:
    """Return when a checkpoint is taken that is due at this moment: then, or when the next second begins."""
    return due if has_checkpoints(int(due)) else int(due) + 1.0
