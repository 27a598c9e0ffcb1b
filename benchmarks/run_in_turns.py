"""`twopc run`, with periodic checkpoints in every other second only, as the monotonic clock counts them.

    python benchmarks/run_in_turns.py run JOB_FILE ...

The coordinator must be the driver's own. Nothing else is changed.
"""

from __future__ import annotations

from unittest.mock import patch

from turns import in_turn

from coordinator.schedule import Schedule
from twopc.__main__ import main

_next_periodic = Schedule.next_periodic


def next_periodic(schedule: Schedule) -> int | None:
    """When the next one is due by the settings, or at the start of the next second that has checkpoints."""
    due = _next_periodic(schedule)
    return None if due is None else round(in_turn(due / 1000) * 1000)


if __name__ == "__main__":
    with patch.object(Schedule, "next_periodic", next_periodic):
        main()
