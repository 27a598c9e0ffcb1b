"""Who adopts orphans waits for them, as the first process of a machine does."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")

PARENT = """
import subprocess
import sys
from scripts.tiers.orphans import adopt, wait

adopt(True)
sys.exit(wait(subprocess.Popen([sys.executable, "-c", sys.argv[1]])))
"""
# It ends once the process that it has left without a parent is gone, and not only ended.
CHILD = """
import subprocess
import sys
import time
import psutil

orphan = int(subprocess.check_output(["sh", "-c", "sleep 0.2 >&2 & echo $!"]))
assert psutil.Process(orphan).ppid() == psutil.Process().ppid()
while psutil.pid_exists(orphan):
    time.sleep(0.02)
sys.exit(7)
"""


def test_an_orphan_that_ends_is_gone_at_once_and_the_code_of_who_is_waited_for_is_returned() -> None:
    assert subprocess.run([sys.executable, "-c", PARENT, CHILD], timeout=120, check=False).returncode == 7
