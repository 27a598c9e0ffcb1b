"""Takes a pre-committed transaction away from a job: by the broker's own clock, or as that clock would."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from twopc.checkpoints.catalog import read_job
from twopc.drill.own_broker import TRANSACTION_TIMEOUT_SECONDS
from twopc.errors import Unavailable
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.transactions.resume import SettleAction, is_lost, settle
from twopc.protocol.facts import Committable
from twopc.sink import Outcome
from twopc.storage.local import LocalStore

NOTHING_OPEN = "no transaction of the newest checkpoint was open any more"

_SETTLE_SECONDS = 10.0
_REAPER_SECONDS = 20.0
"""How much later than its time-out a transaction may be gone: the broker looks twice a second, if it is not busy."""
_TURN_SECONDS = 0.2


def abort_one(client: ControlClient, checkpoint_dir: Path, job: str) -> str | None:
    """Abort a transaction of the newest checkpoint; return why there was none to abort, or None."""
    for item in _newest_committables(checkpoint_dir, job):
        _outcome(client, item, SettleAction.ABORT)
        if is_lost(client, item):
            return None
    return NOTHING_OPEN


def expire_one(client: ControlClient, checkpoint_dir: Path, job: str) -> str | None:
    """Wait until the broker has expired a transaction of the newest checkpoint; return why it did not, or None."""
    open_ones = [
        item
        for item in _newest_committables(checkpoint_dir, job)
        if _outcome(client, item, SettleAction.HOLD) is Outcome.HELD
    ]
    if not open_ones:
        return NOTHING_OPEN
    deadline = time.monotonic() + TRANSACTION_TIMEOUT_SECONDS + _REAPER_SECONDS
    while time.monotonic() < deadline:
        with suppress(Unavailable):
            if any(is_lost(client, item) for item in open_ones):
                return None
        time.sleep(_TURN_SECONDS)
    return "the broker did not expire the transaction"


def _outcome(client: ControlClient, item: Committable, act: SettleAction) -> Outcome:
    return settle(client, item, confirmed=False, budget_seconds=_SETTLE_SECONDS, act=act).outcome


def _newest_committables(checkpoint_dir: Path, job: str) -> tuple[Committable, ...]:
    metadata = read_job(LocalStore(checkpoint_dir), job).completed[-1].metadata
    assert metadata is not None
    return tuple(metadata.committables)
