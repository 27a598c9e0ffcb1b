"""SIGTERM and Ctrl-C: for commands that delete something before they end, and for those that serve until told."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt, so that what was made is deleted on the way out."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def told_to_end() -> threading.Event:
    """Return what SIGTERM or Ctrl-C sets, from now on."""
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    return told


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
