"""Durations as people write them: 500ms, 2s, 1.5m, 1h, 1d."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

DAY_MS = 86_400_000
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")


def duration_ms(written: Any) -> int:
    """Return whole milliseconds; raise ValueError for what isn't a duration, a number without a unit included."""
    if isinstance(written, timedelta):
        exact = written.total_seconds() * 1_000
    elif isinstance(written, str) and (match := _WRITTEN.fullmatch(written.strip().lower())):
        exact = float(match[1]) * _UNITS_MS[match[2]]
    else:
        raise ValueError(f"{written!r} is not a duration: write a number and its unit, such as 500ms, 2s, 1m, 1h or 1d")
    if exact != int(exact):
        raise ValueError(f"{written!r} is not a whole number of milliseconds")
    return int(exact)
