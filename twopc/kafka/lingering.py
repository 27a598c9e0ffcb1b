"""What earlier attempts left open: found by the shape of its transactional id, and ended by taking the id over."""

from __future__ import annotations

import logging
from collections.abc import Callable

from twopc.crashpoints import CrashPoint, reached
from twopc.kafka.naming import SlotName, parse_transactional_id
from twopc.kafka.patience import patiently
from twopc.kafka.wire import ControlClient
from twopc.protocol.ids import AttemptId
from twopc.protocol.recovery import BrokerState

log = logging.getLogger(__name__)

BUDGET_SECONDS = 60.0

_OPEN = {
    BrokerState.ONGOING,
    BrokerState.PREPARE_COMMIT,
    BrokerState.PREPARE_ABORT,
    BrokerState.PREPARE_EPOCH_FENCE,
}


def take_over_all(client: ControlClient, prefix: str, timeout_ms: int) -> list[str]:
    """Initialise every id of the prefix that a broker remembers, whatever its state; return those that were open.

    That aborts what is open and fences every producer of an earlier attempt. Everything worth keeping must be settled.
    """
    return _take_over(client, prefix, timeout_ms, lambda name, state: True)


def take_over_foreign(
    client: ControlClient, prefix: str, timeout_ms: int, attempt: AttemptId, parallelism: int
) -> list[str]:
    """The same for what is open and can't be this attempt's own: a zombie may have opened it after the first time."""
    return _take_over(
        client,
        prefix,
        timeout_ms,
        lambda name, state: state in _OPEN and not name.may_belong_to(attempt, parallelism),
    )


def _take_over(
    client: ControlClient, prefix: str, timeout_ms: int, chosen: Callable[[SlotName, BrokerState], bool]
) -> list[str]:
    lingering = []
    for transactional_id, state in sorted(patiently(client.list_transactions, BUDGET_SECONDS).items()):
        name = parse_transactional_id(prefix, transactional_id)
        if name is None or not chosen(name, state):
            continue
        _initialise(client, transactional_id, timeout_ms)
        reached(CrashPoint.DRIVER_IN_SWEEP)
        if state in _OPEN:
            lingering.append(transactional_id)
    return lingering


def _initialise(client: ControlClient, transactional_id: str, timeout_ms: int) -> None:
    """Return when it is done: the broker says CONCURRENT_TRANSACTIONS while it still aborts."""
    patiently(lambda: client.init_producer_id(transactional_id, timeout_ms), BUDGET_SECONDS)
