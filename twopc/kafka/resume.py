"""Settling a pre-committed transaction from outside its producer: ask, judge, act, and ask again when in doubt.

Invariants:

- Every turn starts at DescribeTransactions; an EndTxn is sent only in the same turn as the verdict that allows it.
- No error code decides: after anything but a yes the next turn asks again.
- Nothing is initialised here: that would destroy the evidence.
"""

from __future__ import annotations

import logging
from typing import assert_never

from twopc.errors import Unavailable
from twopc.kafka.committable import PreparedTransaction, witness_metadata
from twopc.kafka.patience import pauses
from twopc.kafka.wire import ControlClient
from twopc.protocol.facts import Committable
from twopc.protocol.recovery import AlreadyCommitted, Commit, Evidence, Lost, Verdict, Wait, Witness, judge
from twopc.sink import Outcome, Settled

log = logging.getLogger(__name__)


def settle(client: ControlClient, committable: Committable, *, confirmed: bool, budget_seconds: float) -> Settled:
    """Return what became of the transaction; raise Unavailable if it can't be told within the budget. Idempotent."""
    prepared = PreparedTransaction.from_committable(committable)
    doubt = ""
    for _ in pauses(budget_seconds):
        try:
            settled = _turn(client, committable, prepared, confirmed)
        except Unavailable as error:
            doubt = str(error)
            continue
        if settled is not None:
            log.debug("%s: %s, because %s", committable.name, settled.outcome.value, settled.evidence)
            return settled
        doubt = "the broker has not ended it yet"
    raise Unavailable(f"transaction {committable.name} could not be settled within {budget_seconds:.0f} s: {doubt}")


def _turn(
    client: ControlClient, committable: Committable, prepared: PreparedTransaction, confirmed: bool
) -> Settled | None:
    """Ask, judge and act once; None if it must be done again."""
    verdict: Verdict = judge(prepared.recorded, gather(client, prepared, confirmed))
    match verdict:
        case Commit():
            if client.end_transaction(prepared.transactional_id, prepared.producer_id, prepared.producer_epoch):
                return Settled(committable, Outcome.COMMITTED, "it was open, and the broker has committed it")
            return None
        case AlreadyCommitted(why):
            return Settled(committable, Outcome.ALREADY_COMMITTED, why)
        case Lost(why):
            return Settled(committable, Outcome.LOST, why)
        case Wait():
            return None
        case _:
            assert_never(verdict)


def gather(client: ControlClient, prepared: PreparedTransaction, confirmed: bool) -> Evidence:
    """Collect all that can be known about the transaction now."""
    found = client.describe_transaction(prepared.transactional_id)
    topics = client.topics(prepared.topic_ids)
    return Evidence(
        described=None if found is None else found.described,
        topic_ids={name: topic.topic_id for name, topic in topics.items()},
        confirmed=confirmed,
        witness=_witness(client, prepared),
    )


def _witness(client: ControlClient, prepared: PreparedTransaction) -> Witness:
    """Ask the group. Only the very positions with the very checkpoint id count: a group may have served another job."""
    if prepared.group is None or not prepared.positions:
        return Witness.UNKNOWN
    held = client.group_offsets(prepared.group, [item.partition for item in prepared.positions])
    if any(item.partition not in held for item in prepared.positions):
        return Witness.UNKNOWN
    metadata = witness_metadata(prepared.checkpoint_id)
    same = all(
        (held[item.partition].position, held[item.partition].metadata) == (item.position, metadata)
        for item in prepared.positions
    )
    return Witness.COMMITTED if same else Witness.NOT_COMMITTED
