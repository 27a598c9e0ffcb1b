"""Settling a pre-committed transaction from outside its producer: ask, judge, act, and ask again when in doubt.

Invariants:

- Every turn starts at DescribeTransactions; an EndTxn is sent only in the same turn as the verdict that allows it.
- No error code decides: after anything but a yes the next turn asks again.
- Nothing is initialised here: that would destroy the evidence.
- Of one subtask, nothing is committed behind a transaction that is lost: if that one can be written again, so must be
  what followed it, and only once. An abort is an EndTxn too, so the broker goes on knowing this very transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from typing import assert_never

from twopc.errors import Unavailable
from twopc.faults.points import CrashPoint, reached
from twopc.kafka.clients.control_client import ControlClient, GroupOffset
from twopc.kafka.clients.retry import backoff
from twopc.kafka.positions.partition_position import PartitionPosition
from twopc.kafka.positions.witness import WitnessMetadata
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.kafka.transactions.transaction_verdict import (
    AlreadyCommitted,
    Commit,
    Evidence,
    Lost,
    Verdict,
    Wait,
    Witness,
    judge,
    judge_fate,
)
from twopc.protocol.facts import Committable
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.sink import Outcome, Settled

log = logging.getLogger(__name__)


class SettleAction(Enum):
    """The act on a transaction that is open and whole."""

    COMMIT = "commit"
    HOLD = "leave as it is"
    ABORT = "abort"


def settle_all(
    client: ControlClient, committables: Iterable[Committable], confirmed: frozenset[str], budget_seconds: float
) -> list[Settled]:
    """Settle these, which must be in the order of their checkpoints; hold back what is open behind a lost one."""
    found: list[Settled] = []
    losers: set[SubtaskIndex] = set()
    for item in committables:
        if found:
            reached(CrashPoint.DRIVER_IN_SETTLE, checkpoint=item.checkpoint_id)
        act = SettleAction.HOLD if item.subtask in losers else SettleAction.COMMIT
        settled = settle(client, item, confirmed=item.name in confirmed, budget_seconds=budget_seconds, act=act)
        if settled.outcome is Outcome.LOST:
            losers.add(item.subtask)
        found.append(settled)
    return found


def act_on_all(
    client: ControlClient, committables: Sequence[Committable], budget_seconds: float, act: SettleAction
) -> list[Settled]:
    """Settle what was held back, one way or the other."""
    return [settle(client, item, confirmed=False, budget_seconds=budget_seconds, act=act) for item in committables]


def settle(
    client: ControlClient,
    committable: Committable,
    *,
    confirmed: bool,
    budget_seconds: float,
    act: SettleAction = SettleAction.COMMIT,
) -> Settled:
    """Return what became of the transaction; raise Unavailable if it can't be told within the budget. Idempotent."""
    prepared = PreparedTransaction.from_committable(committable)
    doubt = ""
    for _ in backoff(budget_seconds):
        try:
            settled = _turn(client, committable, prepared, confirmed, act)
        except Unavailable as error:
            doubt = str(error)
            continue
        if settled is not None:
            log.debug("%s: %s, because %s", committable.name, settled.outcome.value, settled.evidence)
            return replace(settled, holds_output=prepared.recorded.holds_output)
        doubt = "the broker has not ended it yet"
    raise Unavailable(f"transaction {committable.name} could not be settled within {budget_seconds:.0f} s: {doubt}")


def is_lost(client: ControlClient, committable: Committable) -> bool:
    """Whether the transaction can't be committed any more, also where it held positions only; raise Unavailable."""
    prepared = PreparedTransaction.from_committable(committable)
    return isinstance(judge_fate(prepared.recorded, gather(client, prepared, confirmed=False)), Lost)


def _turn(
    client: ControlClient, committable: Committable, prepared: PreparedTransaction, confirmed: bool, act: SettleAction
) -> Settled | None:
    """Ask, judge and act once; None if it must be done again."""
    verdict: Verdict = judge(prepared.recorded, gather(client, prepared, confirmed))
    match verdict:
        case Commit():
            # Asked in this very turn. An error code of EndTxn is no evidence: the answer may be of another transaction.
            return _end(client, committable, prepared, act)
        case AlreadyCommitted(why):
            return Settled(committable, Outcome.ALREADY_COMMITTED, why)
        case Lost(why, certain):
            return Settled(committable, Outcome.LOST, why, certain)
        case Wait():
            return None
        case _:
            assert_never(verdict)


def _end(
    client: ControlClient, committable: Committable, prepared: PreparedTransaction, act: SettleAction
) -> Settled | None:
    """Act on a transaction that is open and whole; None if it must be asked about again."""
    if act is SettleAction.HOLD:
        return Settled(committable, Outcome.HELD, "it is open, behind one of its subtask that is lost")
    commit = act is SettleAction.COMMIT
    answer = client.end_transaction(
        prepared.transactional_id, prepared.producer_id, prepared.producer_epoch, commit=commit
    )
    # That it was aborted is asked again, and not taken from an answer: a zombie may have committed it before.
    return (
        Settled(committable, Outcome.COMMITTED, "it was open, and the broker has committed it")
        if answer and commit
        else None
    )


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
    same = all(_is_witness(held[item.partition], item, prepared.checkpoint_id) for item in prepared.positions)
    return Witness.COMMITTED if same else Witness.NOT_COMMITTED


def _is_witness(held: GroupOffset, item: PartitionPosition, checkpoint_id: CheckpointId) -> bool:
    found = WitnessMetadata.parse(held.metadata)
    return held.position == item.position and found is not None and found.is_of(checkpoint_id, item.topic_id)
