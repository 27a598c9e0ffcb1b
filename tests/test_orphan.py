"""A process that is run as an orphan never outlives who started it."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil

PATIENCE_SECONDS = 30.0
PARENT = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-m", "twopc.orphan", "http.server", "--bind", "127.0.0.1", "0"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
line = child.stdout.readline()
print(child.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_it_ends_soon_after_its_parent_was_killed() -> None:
    parent = subprocess.run([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, check=False, timeout=60)
    child = int(parent.stdout)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while psutil.pid_exists(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(child)
