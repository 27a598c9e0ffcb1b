"""A process that is run as an orphan never outlives who started it."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil

PATIENCE_SECONDS = 120.0
PARENT = """
import os, subprocess, sys
served = ["http.server", "--bind", "127.0.0.1", "0"]
child = subprocess.Popen([sys.executable, "-u", "-m", "twopc.worker.parent_watchdog", *served],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
line = child.stdout.readline()
print(child.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def runs(pid: int) -> bool:
    """Whether it has not ended: who inherits it may wait for it late, or never."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_it_ends_soon_after_its_parent_was_killed() -> None:
    parent = subprocess.run(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    child = int(parent.stdout)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while runs(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not runs(child)


def test_it_ends_at_once_if_its_parent_had_ended_before_it_could_look() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(timeout=PATIENCE_SECONDS)
    late = (
        "import time; from twopc.worker.parent_watchdog import end_with_parent; "
        f"end_with_parent({gone.pid}); time.sleep(60)"
    )
    done = subprocess.run(
        [sys.executable, "-c", late], stderr=subprocess.PIPE, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    assert (done.returncode, f"parent process {gone.pid} has ended" in done.stderr) == (70, True)


FORKING = """
import os, time
from twopc.worker.parent_watchdog import end_forked_with_this
end_forked_with_this()
child = os.fork()
if not child:
    grandchild = os.fork()
    if grandchild:
        print(os.getpid(), grandchild, flush=True)
    time.sleep(600)
time.sleep(600)
"""


def test_what_a_process_forked_ends_with_it_and_so_on() -> None:
    parent = subprocess.Popen([sys.executable, "-c", FORKING], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    forked = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(forked) == 2
    assert all(map(runs, forked))
    parent.kill()
    parent.wait(timeout=PATIENCE_SECONDS)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(map(runs, forked)) and time.monotonic() < deadline:
        time.sleep(0.05)
    parent.stdout.close()
    assert not any(map(runs, forked))
