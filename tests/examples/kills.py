"""A process that is killed before any line of a module: the line does not happen, nor does anything behind it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any


class KilledProcess(BaseException):
    """Nothing catches it: who is killed does nothing more."""


def killed_before(line: int, module: ModuleType, act: Callable[[], object]) -> bool:
    """Run `act` until it is about to run its `line`-th line in the module; return whether it got that far."""
    left = line

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != module.__file__:
            return None
        if event == "line":
            left -= 1
            if not left:
                sys.settrace(None)
                raise KilledProcess
        return trace

    before, killed = sys.gettrace(), False
    with warnings.catch_warnings():
        # Who is killed closes nothing.
        warnings.simplefilter("ignore", ResourceWarning)
        sys.settrace(trace)
        try:
            act()
        except KilledProcess:
            killed = True
        finally:
            sys.settrace(before)
    return killed
