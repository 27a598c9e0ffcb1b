"""A short run of `make torture`, so that it can't rot: a few seeds on each kind of cluster that starts quickly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.drill, pytest.mark.proof, pytest.mark.timeout(1200)]


def tortured(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.torture", *arguments]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    return subprocess.run(command, capture_output=True, text=True, timeout=1100, check=False, env=environment)


@pytest.mark.parametrize("seed", [0, 8], ids=["transaction version 2", "transaction version 1"])
def test_a_few_random_runs_leave_nothing_wrong(tmp_path: Path, seed: int) -> None:
    ended = tortured(tmp_path, "--seed", str(seed), "--runs", "3")
    assert ended.returncode == 0, ended.stdout + ended.stderr[-2_000:]
    assert "3 runs from seed" in ended.stdout


def test_three_brokers_are_tortured_too(tmp_path: Path) -> None:
    ended = tortured(tmp_path, "--seed", "16", "--runs", "1")
    assert ended.returncode == 0, ended.stdout + ended.stderr[-2_000:]
    assert "3 broker(s)" in ended.stdout
