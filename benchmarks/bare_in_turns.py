"""The bare loop, with checkpoints in every other second only, as the monotonic clock counts them.

    python benchmarks/bare_in_turns.py ...

It takes what `bare_loop.py` takes. Nothing else is changed.
"""

from __future__ import annotations

from unittest.mock import patch

import bare_loop
from turns import in_turn

_next_checkpoint = bare_loop.next_checkpoint


def next_checkpoint(now: float, interval_s: float) -> float:
    """When it is due by the interval, or at the start of the next second that has checkpoints."""
    return in_turn(_next_checkpoint(now, interval_s))


if __name__ == "__main__":
    with patch.object(bare_loop, "next_checkpoint", next_checkpoint):
        bare_loop.main()
