"""Whether a job runs, as far as its checkpoint folder and this machine know."""

from __future__ import annotations

from twopc.driver.discovery import find
from twopc.errors import ConfigurationError
from twopc.protocol.ledger_state import LedgerState
from twopc.storage.store import CheckpointStore


def runs_here(store: CheckpointStore, job: str) -> bool:
    """Whether a coordinator of the job runs on this machine."""
    try:
        find(store, job)
    except ConfigurationError:
        return False
    return True


def refuse_unended(job: str, state: LedgerState, killed: bool, elsewhere: str) -> None:
    """Raise ConfigurationError unless the last run has ended in order, or was `killed`, as a person says.

    `elsewhere` is what they do about one that runs on another machine.
    """
    if state.ended is None and not killed:
        raise ConfigurationError(
            f"the last run of job {job!r} has not ended in order: if it runs elsewhere, {elsewhere}; if it was killed, "
            "and runs nowhere, say so with --killed"
        )
