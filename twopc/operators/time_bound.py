"""How far one record may move stream time: no further than so much ahead of the clock.

A record in microseconds, taken for milliseconds, would move it by 50,000 years: all that has a time to live would be
gone at once, every timer due, and all records behind it late for ever.
"""

from __future__ import annotations

from collections.abc import Callable

from twopc.clock import Clock, date
from twopc.column import named
from twopc.errors import UserCodeError
from twopc.record import RecordFault, Row

Latest = Callable[[], int]
"""Says to which time, in Unix milliseconds, a record may move stream time now."""


def unbounded() -> int:
    """A record may move it to any time."""
    return 2**63


def ahead_of(clock: Clock, ahead_ms: int) -> Latest:
    """Let records move it so far ahead of a clock."""
    return lambda: clock.now().unix_ms + ahead_ms


def without_time(row: Row, stamp: int | None, step: object) -> RecordFault:
    """Return the fault of a record that has no timestamp, or one behind all that can be told."""
    what = "no timestamp" if stamp is None else f"the timestamp {stamp}, behind the year 9999"
    return RecordFault(
        UserCodeError(
            f"{named(row)} has {what}, and {step} needs one: say what it is, with timestamp= "
            "on the source, or drop such records with filter_records"
        )
    )


def too_far_ahead(row: Row, stamp: int, latest: int, step: object) -> RecordFault:
    """Return the fault of a record that would move stream time further."""
    return RecordFault(
        UserCodeError(
            f"{named(row)} has the timestamp {stamp}, and {step} takes none later than {latest} ({date(latest)}), "
            "which is the clock and max_time_ahead: it would move stream time there, for all records behind it. Give "
            "it its time in Unix milliseconds, with timestamp= on the source, or allow more with --max-time-ahead"
        )
    )
