"""Faults of storage: damages a file of a checkpoint, or takes the room for one, and sees that the job names it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from twopc import events
from twopc.checkpoints.catalog import read_job
from twopc.drill.supervisor import Supervisor
from twopc.errors import CheckpointCorrupted
from twopc.protocol.layout import metadata_path
from twopc.storage.local import LocalStore

NO_ROOM = 0
LITTLE_ROOM = 16
"""Bytes a file: for the note that a step was reached, and for none of a snapshot."""

_REFUSAL_SECONDS = 60.0
_DECLINE_SECONDS = 10.0
_TURN_SECONDS = 0.02


def damage_newest(supervisor: Supervisor, job: str) -> Iterator[str]:
    """Damage a file, let everything fall, and bring the file back; yield a finding if it was not refused by name."""
    supervisor.kill(supervisor.driver)
    supervisor.kill(supervisor.coordinator)
    store = LocalStore(supervisor.checkpoint_dir)
    path = store.root / job / metadata_path(read_job(store, job).completed[-1].checkpoint_id)
    whole = path.read_bytes()
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    supervisor.keep_running()
    driver = supervisor.driver
    deadline = time.monotonic() + _REFUSAL_SECONDS
    while driver is not None and driver.exit_code is None and time.monotonic() < deadline:
        time.sleep(_TURN_SECONDS)
    code = None if driver is None else driver.exit_code
    if driver is None or code != CheckpointCorrupted.exit_code or path.name not in driver.last_words():
        yield f"not refused: {path.parent.name}/{path.name} was damaged, and the job ended with {code}"
    path.write_bytes(whole)
    supervisor.kill(supervisor.driver)
    supervisor.kill(supervisor.coordinator)


def fill_under(supervisor: Supervisor, worker: int, go_on: Callable[[], None]) -> str | None:
    """Let a worker that stores a snapshot go on with no room for it, until the checkpoint is declined for that.

    Return why nothing was struck, or None.
    """
    before = len(list(declines(supervisor)))
    if not supervisor.limit_files(worker, LITTLE_ROOM):
        return "the worker that stood there had ended"
    go_on()
    try:
        deadline = time.monotonic() + _DECLINE_SECONDS
        while time.monotonic() < deadline:
            if len(list(declines(supervisor))) > before:
                return None
            time.sleep(_TURN_SECONDS)
    finally:
        supervisor.limit_files(worker, None)
    return f"no checkpoint was declined by name within {_DECLINE_SECONDS:.0f} s"


def declines(supervisor: Supervisor) -> Iterator[str]:
    """Yield why checkpoints were declined, where it is that a snapshot could not be stored."""
    for event in supervisor.all_events():
        if isinstance(event, events.CheckpointAborted) and " declined: the snapshot of subtask" in event.message:
            yield event.message
