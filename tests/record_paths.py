"""The path of a test's records: by the compiled part, and one day in four one by one, as without it.

Every test has a day of its own, so that each run has both paths in every tier, and four days have all of both.
"""

from __future__ import annotations

import os
from datetime import date
from zlib import crc32

from twopc.compiled import BATCHES, NotCompiled, compiled
from twopc.kafka import native

VARIABLE = "RECORDS_DAY"
"""In the environment of a run: the number of the day that it is played as. There is none where all take one path."""

DAYS = 4


def choose() -> None:
    """Have tests take either path, unless one was chosen, or there is but one. To be called before any of them."""
    try:
        compiled(BATCHES)
    except NotCompiled:
        os.environ.setdefault(native.VARIABLE, "0")
    if native.VARIABLE not in os.environ:
        os.environ.setdefault(VARIABLE, str(date.today().toordinal()))


def is_one_by_one(test: str) -> bool:
    """Whether the test with this id is one whose records go through confluent-kafka one by one in this run."""
    day = os.environ.get(VARIABLE)
    return day is not None and (crc32(test.encode()) + int(day)) % DAYS == 0
