"""Chooses the kind of windows that a step has."""

from __future__ import annotations

from typing import assert_never

from twopc.operators.aligned_windows import AlignedWindows
from twopc.operators.session_windows import SessionWindows
from twopc.operators.sliding_windows import SlidingWindows
from twopc.operators.window_kind import WindowKind
from twopc.operators.window_step import WindowAggregate
from twopc.operators.window_values import WindowValues
from twopc.windows import Hopping, Session, Sliding, Tumbling


def kind_of(step: WindowAggregate) -> WindowKind:
    """Return what decides about the windows of this step."""
    values = WindowValues(step)
    match step.windows:
        case Tumbling() | Hopping() as aligned:
            return AlignedWindows(step, aligned, values)
        case Session() as sessions:
            return SessionWindows(step, sessions, values)
        case Sliding() as sliding:
            return SlidingWindows(step, sliding, values)
        case _:
            assert_never(step.windows)
