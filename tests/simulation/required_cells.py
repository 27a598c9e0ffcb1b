"""The cells that the tier has to reach: each a place at which a process is stopped, and where the others are. Data.

Every cell is in one of two tables: it must be reached, or it is left out for a reason.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.cells import PeerState
from twopc.faults.points import CrashPoint

Cell = tuple[CrashPoint, PeerState]

_BY_CODE = {point.code: point for point in CrashPoint}
_ALL = " ".join(_BY_CODE)

MUST_REACH: Mapping[PeerState, str] = {
    PeerState.AWAY: (
        "C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13 C14 T1 T2 T3 T4 T5 T6 T7 T8 T9 T10 T11 T12 T13 T17 T17+ T18 T19 "
        "G1 G2 G3 R1 R4 R7 R8 R9 R10"
    ),
    PeerState.RECOVERING: (
        "C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13 C14 C15 T1 T2 T3 T4 T5 T6 T7 T8 T9 T10 T11 T12 T13 T17 T17+ T18 "
        "T19 G1 G2 G3 R1 R2 R4 R5 R6 R6+ R7 R8 R9 R10"
    ),
    PeerState.IN_FLIGHT: (
        "C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 T1 T2 T3 T4 T5 T6 T7 T8 T9 T10 T11 T12 T13 T17 T18 T19 R1 R9"
    ),
    PeerState.UNCOMMITTED: "C1 C2 C12 C13 T13 T17 T17+ T18 T19 G1",
    PeerState.QUIET: "C1 C2 G1 G2 G3 R1 R2 R3 R4 R6 R6+ R7 R8 R9",
}
"""By their codes in the crash table."""

_RARE = "two rare things at once: it happens, but not in every 20,000 seeds"
_CHECKPOINT = "the place is inside a checkpoint, which is in flight then or just completed"
_NO_CHECKPOINT = "no checkpoint of the attempt is in flight, or waits for its commit, before all its subtasks run"
_AT_A_START = "pruning follows a new attempt, so a driver is recovering"
_ONE_BROKER = "an answer of the broker has to be lost, late or early just there"
_ONE_DRIVER = "it takes a driver that was away before: the one that recovers now is another"

LEFT_OUT: Mapping[PeerState, Mapping[str, str]] = {
    PeerState.AWAY: {"C15": _AT_A_START, "T14 T15 T16": _ONE_BROKER, "R2 R3 R5 R6 R6+": _RARE},
    PeerState.RECOVERING: {"T14 T15 T16": _ONE_BROKER, "R3": _RARE},
    PeerState.IN_FLIGHT: {
        "C1 C12 C13 T17+ G1 G2 G3": _RARE,
        "C14 C15": _AT_A_START,
        "T14 T15 T16": _ONE_BROKER,
        "R2 R3 R4 R5 R6 R6+ R7 R8 R10": _NO_CHECKPOINT,
    },
    PeerState.UNCOMMITTED: {
        "G2 G3": _RARE,
        "C3 C4 C5 C6 C7 C8 C9 C10 C11 T1 T2 T3 T4 T5 T6 T7 T8 T9 T10 T11 T12": _CHECKPOINT,
        "C14 C15": _AT_A_START,
        "T14 T15 T16": _ONE_BROKER,
        "R1 R2 R3 R4 R5 R6 R6+ R7 R8 R9 R10": _NO_CHECKPOINT,
    },
    PeerState.QUIET: {
        "C3 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13 T1 T2 T3 T4 T5 T6 T7 T8 T9 T10 T11 T12 T13 T17 T17+ T18 T19": _CHECKPOINT,
        "C14 C15": _AT_A_START,
        "T14 T15 T16": _ONE_BROKER,
        "R5": _RARE,
        "R10": _ONE_DRIVER,
    },
}


def points(codes: str) -> list[CrashPoint]:
    return [_BY_CODE[code] for code in codes.split()]


def cells_to_reach() -> list[Cell]:
    return [(point, state) for state, codes in MUST_REACH.items() for point in points(codes)]


def cells_left_out() -> list[Cell]:
    return [(point, state) for state, groups in LEFT_OUT.items() for codes in groups for point in points(codes)]
