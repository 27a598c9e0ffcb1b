"""Whether this machine has the job's checkpoint folder that the coordinator writes to: looked for, and never made.

A machine on which it is not mounted has an empty place under the same path. Who made the folders there would store
snapshots that nobody finds again. So a subtask looks for the record of its own attempt, which the coordinator has
stored before there was any subtask of it.
"""

from __future__ import annotations

import socket
import time

from twopc.checkpoints.catalog import latest_attempt
from twopc.errors import Unavailable
from twopc.protocol.ids import AttemptId
from twopc.storage.store import CheckpointStore

PATIENCE_SECONDS = 5.0
"""A file server may tell one machine a little later what another has written."""

LOOK_SECONDS = 0.2


def require_shared(root: CheckpointStore, job: str, attempt: AttemptId) -> None:
    """Return when the record of this attempt is seen; raise Unavailable, which names host and path, where it is not.

    Another attempt may find another machine, or this one with its folder mounted: so that is tried.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (lacking := _lacking(root, job, attempt)) is not None:
        if time.monotonic() >= deadline:
            raise Unavailable(lacking)
        time.sleep(LOOK_SECONDS)


def _lacking(root: CheckpointStore, job: str, attempt: AttemptId) -> str | None:
    folder = root.within(job).place()
    try:
        latest = latest_attempt(root, job)
    except OSError as error:
        return f"{_place(folder)} can't be read: {error.strerror}. {_ADVICE}"
    if latest is None:
        return not_here(folder)
    if latest >= attempt:
        return None
    return (
        f"{_place(folder)} is another folder than the one that the coordinator writes to: its ledger ends with attempt "
        f"{latest}, and this is attempt {attempt}. {_ADVICE}"
    )


def not_here(folder: str) -> str:
    """Say that this machine lacks the job's folder."""
    return f"{_place(folder)} is not there, and the coordinator keeps the job's ledger in it. {_ADVICE}"


_ADVICE = "Is --checkpoint-dir one folder that all machines share, and is it mounted on that host?"


def _place(folder: str) -> str:
    """Host and path, as between machines."""
    return f"{socket.gethostname()}:{folder}"
