"""The folder of a JVM goes when the JVM has ended, whatever holds on to this process's pipes."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from twopc.spark.jvm_folder import JvmFolder


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for the JVM."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def gone(folder: Path) -> bool:
    """Return whether it goes while a removal may take."""
    deadline = time.monotonic() + 4.0
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not folder.exists()


@pytest.mark.parametrize("has_jvm", [True, False])
def test_the_folder_goes_though_a_process_forked_off_this_one_lives_on(
    has_jvm: bool, sleeper: subprocess.Popen[bytes]
) -> None:
    folder = JvmFolder()
    if has_jvm:
        folder.belongs_to(sleeper.pid)
    # As a child that a user's function forks: it has all descriptors of this process.
    descriptor = folder._keeper.stdin
    assert descriptor is not None
    with subprocess.Popen(["sleep", "60"], pass_fds=[descriptor.fileno()]) as forked:
        try:
            sleeper.kill()
            sleeper.wait()
            folder.remove()
            assert gone(folder.path)
        finally:
            forked.kill()


def test_a_keeper_that_somebody_killed_is_no_error() -> None:
    folder = JvmFolder()
    folder._keeper.kill()
    folder._keeper.wait()
    folder.belongs_to(os.getpid())
    folder.remove()
    shutil.rmtree(folder.path)


def test_the_folder_stays_while_the_jvm_lives(sleeper: subprocess.Popen[bytes]) -> None:
    folder = JvmFolder()
    folder.belongs_to(sleeper.pid)
    started = time.monotonic()
    while time.monotonic() < started + 0.5:
        assert folder.path.exists()
        time.sleep(0.05)
    sleeper.kill()
    sleeper.wait()
    folder.remove()
    assert gone(folder.path)
