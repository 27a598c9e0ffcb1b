"""Processes that a job left running: found by what they inherited in their environment, not by their names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from tests.leak_audit.findings import Finding, Place, Problem
from tests.warm_start import mark_of

_COMMAND_CHARACTERS = 120


def findings_among_processes(place: Place) -> Iterator[Finding]:
    """Yield every process with the job's marker that still runs."""
    if place.marker is None:
        return
    for process in marked_processes(*place.marker):
        with suppress(psutil.Error):
            command = " ".join(process.cmdline())[:_COMMAND_CHARACTERS]
            yield Finding(Problem.LEAKED_PROCESS, f"process {process.pid}", f"{process.status()}: {command}")


def marked_processes(name: str, value: str) -> Iterator[psutil.Process]:
    """Yield every other process with this in its environment; a zombie (ended, not waited for) holds nothing."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            ended = process.status() == psutil.STATUS_ZOMBIE
            if ended or process.pid == os.getpid():
                continue
            if process.environ().get(name) == value or _was_started_warm(process, name, value):
                yield process


def _was_started_warm(process: psutil.Process, name: str, value: str) -> bool:
    """Whether it has this in the environment that it was given when it was forked; it has a file that says so."""
    files = Path(f"/proc/{process.pid}/fd")
    return files.exists() and any(mark_of(name, value) in os.readlink(file) for file in files.iterdir())
