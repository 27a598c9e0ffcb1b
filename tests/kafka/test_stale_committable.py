"""The test that this sink exists for: committing transaction n must never commit n+1, which has the same producer.

librdkafka keeps a producer's id and epoch over all its transactions, so a stale EndTxn is accepted by the broker and
commits whatever is open (FLINK-8132). Only the start time tells the two apart.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.kafka.kit import DrivenSink, values_of
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.transactions.committable import PreparedTransaction
from twopc.protocol.facts import Committable
from twopc.sink import Outcome

pytestmark = pytest.mark.broker


class Reused(NamedTuple):
    """A committed transaction's committable, and that of the next of the same producer, which is still open."""

    stale: Committable
    later: Committable


@pytest.fixture
def reused(driven: DrivenSink) -> Reused:
    """Go round the slots until the first one is in its second transaction."""
    driven.write(b"n")
    stale = driven.pre_commit(1)
    driven.complete(stale)
    slot = PreparedTransaction.from_committable(stale).transactional_id
    for checkpoint in range(2, 8):
        driven.write(b"between")
        committable = driven.pre_commit(checkpoint)
        if PreparedTransaction.from_committable(committable).transactional_id == slot:
            return Reused(stale, committable)
        driven.complete(committable)
    raise AssertionError(f"slot {slot} was not used again")


def test_the_two_transactions_differ_in_nothing_but_their_start_time(reused: Reused) -> None:
    stale, later = (PreparedTransaction.from_committable(item) for item in reused)
    assert (stale.transactional_id, stale.producer_id, stale.producer_epoch) == (
        later.transactional_id,
        later.producer_id,
        later.producer_epoch,
    )
    assert stale.start_ms < later.start_ms


def test_recovering_the_stale_committable_leaves_the_later_transaction_open(
    driven: DrivenSink, reused: Reused, servers: str, out: str
) -> None:
    before = values_of(servers, out)
    [settled] = driven.recover([reused.stale])
    assert settled.outcome is Outcome.ALREADY_COMMITTED
    assert values_of(servers, out) == before
    with ControlClient(servers, {}) as client:
        found = client.describe_transaction(PreparedTransaction.from_committable(reused.stale).transactional_id)
    assert found is not None
    assert found.described.state is BrokerState.ONGOING


def test_committing_the_stale_committable_live_leaves_the_later_transaction_open(
    driven: DrivenSink, reused: Reused, servers: str, out: str
) -> None:
    before = values_of(servers, out)
    driven.commit(reused.stale)
    assert values_of(servers, out) == before


def test_the_later_transaction_can_still_be_committed_by_its_own_committable(
    driven: DrivenSink, reused: Reused, servers: str, out: str
) -> None:
    before = values_of(servers, out)
    outcomes = [settled.outcome for settled in driven.recover([reused.stale, reused.later])]
    assert outcomes == [Outcome.ALREADY_COMMITTED, Outcome.COMMITTED]
    assert values_of(servers, out) == [*before, b"between"]
