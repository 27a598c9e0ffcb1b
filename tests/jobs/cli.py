"""Runs `twopc` as a user does, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

TIMEOUT_SECONDS = 400.0


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A command that has ended: its exit code, and what it printed."""

    code: int
    out: str
    err: str


def twopc(*arguments: str, **environment: str) -> CommandResult:
    """Run one command to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "twopc", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        env=os.environ | environment,
        check=False,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)
