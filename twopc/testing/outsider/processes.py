"""Processes that a job left running: found by what they inherited in their environment, not by their names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

import psutil

from twopc.testing.outsider.findings import Finding, Place, Problem

_COMMAND_CHARACTERS = 120


def findings_among_processes(place: Place) -> Iterator[Finding]:
    """Yield every process with the job's marker, but this one; a zombie (ended, not yet waited for) holds nothing."""
    if place.marker is None:
        return
    name, value = place.marker
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            ended = process.status() == psutil.STATUS_ZOMBIE
            if not ended and process.pid != os.getpid() and process.environ().get(name) == value:
                command = " ".join(process.cmdline())[:_COMMAND_CHARACTERS]
                yield Finding(Problem.LEAKED_PROCESS, f"process {process.pid}", f"{process.status()}: {command}")
