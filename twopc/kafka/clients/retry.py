"""Retries with growing pauses and jitter: a call that raises Unavailable is repeated until a budget is spent."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from twopc.errors import Unavailable
from twopc.kafka.clients.answered import has_answered
from twopc.kafka.clients.outage import is_spoken_for
from twopc.kafka.clients.reachability import NoBroker

T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 2.0
SILENT_SECONDS = 3.0
"""A wait that lasts longer is logged with its reason, unless the driver of the job logs it (`clients.outage`)."""

log = logging.getLogger(__name__)


def backoff(budget_seconds: float) -> Iterator[None]:
    """Yield once at once, then after growing backoff with jitter, until the budget is spent; at least twice."""
    deadline = time.monotonic() + budget_seconds
    yield
    yield from _growing_backoff(deadline)


def _growing_backoff(deadline: float) -> Iterator[None]:
    pause = FIRST_PAUSE_SECONDS
    while True:
        time.sleep(pause * random.uniform(0.5, 1.0))
        yield
        if time.monotonic() > deadline:
            return
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)


def call_with_retry(ask: Callable[[], T], budget_seconds: float) -> T:
    """Return what `ask` returns; while it raises Unavailable, ask again, until the budget is spent.

    Where brokers never answered anybody of this process, and nobody runs a job in it, once is enough: whoever has typed
    a wrong address is waiting for that word.
    """
    began = time.monotonic()
    try:
        return ask()
    except Unavailable as error:
        if isinstance(error, NoBroker) and not has_answered(error.servers) and not is_spoken_for():
            raise
        last = error
    is_logged = False
    for _ in _growing_backoff(began + budget_seconds):
        waited = time.monotonic() - began
        if waited > SILENT_SECONDS and not is_logged:
            is_logged = True
            level = logging.DEBUG if is_spoken_for() else logging.WARNING
            log.log(level, "%s; asking again for another %.0f s", last, max(0.0, budget_seconds - waited))
        try:
            return ask()
        except Unavailable as error:
            last = error
    raise last
