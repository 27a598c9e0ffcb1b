"""Lists in messages, cut where nobody reads on: a topic may have a thousand partitions. Pure."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 10


def listed(items: Iterable[object], nothing: str = "none") -> str:
    """Return the first ten items, and how many more there are; `nothing` where there is none."""
    every = [str(item) for item in items]
    more = f" and {len(every) - MOST} more" if len(every) > MOST else ""
    return f"{', '.join(every[:MOST])}{more}" if every else nothing
