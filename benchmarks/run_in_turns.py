"""`twopc run`, with periodic checkpoints in every other second only, as the monotonic clock counts them.

    python benchmarks/run_in_turns.py run JOB_FILE ...

The coordinator must be the driver's own. Nothing else is changed.
"""

from __future__ import annotations

from unittest.mock import patch

from coordinator.schedule import Schedule
from twopc.__main__ import main

SECOND_MS = 1_000
_next_periodic = Schedule.next_periodic


def has_checkpoints(second: int) -> bool:
    """Whether checkpoints are taken in this second of the monotonic clock."""
    return second % 2 == 1


def next_periodic(schedule: Schedule) -> int | None:
    """When the next one is due by the settings, or at the start of the next second that has checkpoints."""
    due = _next_periodic(schedule)
    if due is None or has_checkpoints(due // SECOND_MS):
        return due
    return (due // SECOND_MS + 1) * SECOND_MS


if __name__ == "__main__":
    with patch.object(Schedule, "next_periodic", next_periodic):
        main()
