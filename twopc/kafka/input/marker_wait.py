"""Waits for the markers of transactions that are being ended: from then on readers see the output.

A broker answers EndTxn when the decision is durable, and writes the markers into the partitions afterwards: until then
a read_committed reader sees neither this output nor what follows. How long that takes is the broker's affair; a reader
that has to see all that was committed before it came waits here first.
"""

from __future__ import annotations

from typing import Protocol

from twopc.errors import Unavailable
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.clients.retry import backoff, call_with_retry

_ENDING = frozenset({BrokerState.PREPARE_COMMIT, BrokerState.PREPARE_ABORT})


class TransactionLister(Protocol):
    """The part of `twopc.kafka.clients.control_client.ControlClient` that lists transactions."""

    def list_transactions(self) -> dict[str, BrokerState]: ...


def await_markers(client: TransactionLister, budget_seconds: float) -> None:
    """Return when every transaction that is being ended now has its markers; those that follow are not waited for."""
    awaited = _ending(client, budget_seconds)
    for _ in backoff(budget_seconds):
        if not awaited:
            return
        awaited &= _ending(client, budget_seconds)
    if awaited:
        raise Unavailable(f"the brokers have been ending {', '.join(sorted(awaited))} for {budget_seconds:.0f} s")


def _ending(client: TransactionLister, budget_seconds: float) -> set[str]:
    listed = call_with_retry(client.list_transactions, budget_seconds)
    return {name for name, state in listed.items() if state in _ENDING}
