"""The checkpoint that a run starts from, as a user names it; one from elsewhere is brought here first."""

from __future__ import annotations

import logging

from twopc.checkpoints.archive import opened
from twopc.checkpoints.catalog import JobCheckpoints, read_job
from twopc.checkpoints.copy import copy_to_job
from twopc.checkpoints.reference import LocatedCheckpoint
from twopc.config import RunSettings
from twopc.driver.restore_checks import repeated_output_of_copy
from twopc.errors import ConfigurationError
from twopc.logs import NEVER_HIDDEN
from twopc.protocol.checkpoints import LATEST, NONE
from twopc.storage.open import open_store
from twopc.storage.store import CheckpointStore, jobs_in

log = logging.getLogger(NEVER_HIDDEN)


def checkpoint_to_restore(settings: RunSettings, job: str) -> str:
    """Return "latest", "none" or a checkpoint id for `settings.restore_from`; ConfigurationError if it isn't there.

    What may be given is in `twopc.checkpoints.reference`; and an archive of a copy. A checkpoint of another store is
    copied to this run's, where the job must have no past of its own yet.
    """
    wanted = settings.restore_from
    if wanted in (LATEST, NONE):
        return wanted
    root = open_store(settings.checkpoint_dir)
    with opened(wanted, root, job) as located:
        if located.root.identity != root.identity:
            _bring(located, root)
        return str(located.checkpoint_id)


def _bring(located: LocatedCheckpoint, root: CheckpointStore) -> None:
    """Make the checkpoint that is elsewhere one of this folder, unless it was made so before."""
    if located.job in jobs_in(root):
        _refuse_another_past(located, read_job(root, located.job), root)
        return
    root.prepare()
    copy_to_job(located, root.within(located.job))
    log.warning(
        "checkpoint %d of job %s was copied to %s; transactions of the job that it does not hold, and that are still "
        "open, are aborted now; %s",
        located.checkpoint_id,
        located.job,
        root.place(),
        repeated_output_of_copy(located.restorable()),
    )


def _refuse_another_past(located: LocatedCheckpoint, here: JobCheckpoints, root: CheckpointStore) -> None:
    for entry in here.completed:
        if entry.completed.record == located.entry.completed.record:
            return
    newest = here.completed[-1].checkpoint_id if here.completed else "none"
    raise ConfigurationError(
        f"job {located.job!r} has a past of its own in the checkpoint folder {root.place()} (its newest checkpoint: "
        f"{newest}), which checkpoint {located.checkpoint_id}, to be restored, does not belong to: name another "
        "--checkpoint-dir, in which the job has not run yet"
    )
