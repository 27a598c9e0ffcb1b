"""Clients of stores that don't outlive a fork: their threads are not in the child, whose first call would not end."""

from __future__ import annotations

import os

from twopc.errors import ConfigurationError

_used_by: int | None = None


def take_for_this_process(kind: str) -> None:
    """Note that this process uses such a client now; raise ConfigurationError where one it was forked from has."""
    global _used_by
    if _used_by not in (None, os.getpid()):
        raise ConfigurationError(
            f"this process was forked from one that had used {kind}, whose client doesn't outlive a fork: "
            'start processes afresh (multiprocessing: "spawn"), or fork before the first checkpoint store is used'
        )
    _used_by = os.getpid()
