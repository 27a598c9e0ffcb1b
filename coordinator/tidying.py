"""What the coordinator does to keep the checkpoint folder small: never on the way to a message that somebody waits for.

A job with thousands of subtasks has large entries, and an old checkpoint has many files: to sum up, and to delete, may
take longer than to store a fact. So both come after what was stored has been told.
"""

from __future__ import annotations

import logging

from coordinator.ledger import Ledger
from twopc.errors import Fenced
from twopc.faults.points import CrashPoint, reached
from twopc.protocol.ledger_facts import Fact

log = logging.getLogger(__name__)


def tidy(job: str, ledger: Ledger, stored: tuple[Fact, ...]) -> None:
    """Sum up the ledger if it has become long, and delete what these facts forget."""
    try:
        ledger.tidy()
    except Fenced as error:
        log.info("job %s: %s; whatever is to be stored next will be refused", job, error)
        return
    if any(getattr(fact, "forgotten", ()) for fact in stored):
        prune(job, ledger, stored)


def prune(job: str, ledger: Ledger, stored: tuple[Fact, ...]) -> None:
    """Delete what is no longer kept, as far as that is possible now."""
    reached(CrashPoint.COORDINATOR_BEFORE_PRUNE, checkpoint=getattr(stored[-1], "checkpoint_id", 0))
    try:
        ledger.prune()
    except OSError as error:
        log.warning("job %s: old checkpoints could not be deleted: %s", job, error.strerror)
