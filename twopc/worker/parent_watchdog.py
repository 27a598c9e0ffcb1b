"""Ends a worker whose parent has died: nobody is left who could fence it, restart it or read its errors.

`python -m twopc.worker.parent_watchdog MODULE ...` runs a module that way, for as long as the process lives that
started it.
"""

from __future__ import annotations

import logging
import os
import runpy
import sys
import threading
import time
from functools import cache

log = logging.getLogger(__name__)

CHECK_SECONDS = 0.5


@cache
def end_with_parent(started_by: int | None = None) -> None:
    """From now on, end this process soon after its parent process has ended, as if it had been killed.

    `started_by` is the parent's process id, where it is known: the parent may have ended before this is called.
    """
    _watch(os.getppid() if started_by is None else started_by)


@cache
def end_forked_with_this() -> None:
    """From now on, let what this process forks end soon after it, and so on: a user's function may fork and forget."""
    forking = os.getpid()

    def follow() -> None:
        nonlocal forking
        parent, forking = forking, os.getpid()
        _watch(parent)

    os.register_at_fork(after_in_child=follow)


def _watch(parent: int) -> None:
    """End with this parent process; it may have ended already."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(CHECK_SECONDS)
        log.error("the parent process %d has ended: ending too", parent)
        os._exit(70)

    threading.Thread(target=watch, name="twopc-parent", daemon=True).start()


if __name__ == "__main__":
    end_with_parent()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
