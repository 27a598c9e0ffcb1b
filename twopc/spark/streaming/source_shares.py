"""The share of each partition in a batch that may not take all. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

P = TypeVar("P", bound=Hashable)


def shares(behind: Mapping[P, int], most: int) -> dict[P, int]:
    """Return how many offsets to take of each partition: all where they are at most so many, else in proportion.

    Partitions that lag more get more, so that all come to their ends together and no watermark waits for one of them.
    The sum is `most` to the offset, so a batch that may take anything makes progress.
    """
    total = sum(behind.values())
    if total <= most:
        return dict(behind)
    taken = {partition: left * most // total for partition, left in behind.items()}
    rest = sorted(behind, key=lambda partition: behind[partition] * most % total, reverse=True)
    for partition in rest[: most - sum(taken.values())]:
        taken[partition] += 1
    return taken
