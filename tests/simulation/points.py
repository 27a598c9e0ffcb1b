"""The names of the places where a process may be stopped, in the coverage and in strikes."""

from __future__ import annotations

from typing import NamedTuple

from twopc.faults.points import CrashPoint

RECOVERY = frozenset(point for point in CrashPoint if point.code.startswith("R"))
"""The places of a recovery: a run that crashes at them often crashes in one recovery after the other."""


class PointNames(NamedTuple):
    """The names of a point, in the coverage and in strikes."""

    point: str
    reached: str
    crash: str
    pause: str
    company: str
    in_recovery: bool


POINT_NAMES = {
    point.code: PointNames(
        point.name,
        f"reached {point.name}",
        f"crash {point.name}",
        f"pause {point.name}",
        f"stop another {point.name}",
        point in RECOVERY,
    )
    for point in CrashPoint
}


class Chances(NamedTuple):
    """The chances at a point: of the aimed strike, if it is due now, and of others; a pause if there is no crash."""

    aimed: bool
    crash: float
    pause: float
