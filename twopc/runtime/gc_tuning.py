"""Python's search for cycles, seldom while a subtask runs.

A batch is a thousand objects that Python tracks, all free again when the batch is done; by default it looks through the
young ones every 700, so at every batch: 5 % of the data loop's time, for cycles that the loop does not make.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_MAX = 50_000
"""How many more objects may be tracked than at the last search: some megabytes, if every one were in a cycle."""


@contextmanager
def collected_seldom() -> Iterator[None]:
    """Search seldom, and afterwards as before. For the whole process."""
    before = gc.get_threshold()
    gc.set_threshold(YOUNG_MAX, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
