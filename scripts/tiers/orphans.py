"""Makes this process the parent of what its descendants start and leave behind, on Linux; elsewhere nothing changes.

So it knows of all of them, also of those that have nothing of its environment. Whoever is a parent has to wait for its
children: a process that ended and that nobody waits for looks alive to many a test.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import psutil

_SET_CHILD_SUBREAPER = 36


def adopt(adopting: bool) -> None:
    """Be the parent of orphans among the descendants of this process, or no longer; raise OSError if that fails."""
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(
        _SET_CHILD_SUBREAPER, int(adopting), 0, 0, 0
    ):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def wait(process: subprocess.Popen[bytes]) -> int:
    """Return the exit code of a child when it ends, and bury the orphans that end meanwhile.

    To be used where no other child is waited for: its exit code would be lost.
    """
    if sys.platform != "linux":
        return process.wait()
    while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)) and ended.si_pid != process.pid:
        os.waitpid(ended.si_pid, 0)
    return process.wait()


def descendants() -> set[psutil.Process]:
    """Return all that this process has started, and what those have."""
    return set(psutil.Process().children(recursive=True))
