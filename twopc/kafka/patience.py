"""Asking again: what is unavailable now is asked for until a budget of time is spent."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from twopc.errors import Unavailable

T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 2.0


def pauses(budget_seconds: float) -> Iterator[None]:
    """Yield once at once, then after growing pauses with jitter, until the budget is spent; at least twice."""
    deadline = time.monotonic() + budget_seconds
    pause = FIRST_PAUSE_SECONDS
    yield
    while True:
        time.sleep(pause * random.uniform(0.5, 1.0))
        yield
        if time.monotonic() > deadline:
            return
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def patiently(ask: Callable[[], T], budget_seconds: float) -> T:
    """Return what `ask` returns; while it raises Unavailable, ask again, until the budget is spent."""
    last: Unavailable | None = None
    for _ in pauses(budget_seconds):
        try:
            return ask()
        except Unavailable as error:
            last = error
    assert last is not None
    raise last
