from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.kafka.clients.described_transaction import BrokerState, Described
from twopc.kafka.transactions.transaction_verdict import (
    AlreadyCommitted,
    Commit,
    Evidence,
    Lost,
    Recorded,
    Wait,
    Witness,
    judge,
)

RECORDED = Recorded(producer_id=7, producer_epoch=3, start_ms=1_000, topic_ids={"out": "id-1"})
ITSELF = Described(BrokerState.ONGOING, 7, 3, 1_000)
EVIDENCE = Evidence(described=ITSELF, topic_ids={"out": "id-1"}, confirmed=False, witness=Witness.NOT_COMMITTED)

SURELY_COMMITTED = (BrokerState.PREPARE_COMMIT, BrokerState.COMPLETE_COMMIT)
SURELY_ABORTED = (BrokerState.PREPARE_ABORT, BrokerState.COMPLETE_ABORT)

described = st.builds(
    Described,
    state=st.sampled_from(BrokerState),
    producer_id=st.sampled_from([6, 7, 8]),
    producer_epoch=st.sampled_from([2, 3, 4]),
    start_ms=st.sampled_from([-1, 999, 1_000, 1_001]),
)
evidence = st.builds(
    Evidence,
    described=st.none() | described,
    topic_ids=st.sampled_from([{"out": "id-1"}, {"out": "id-2"}, {}]),
    confirmed=st.booleans(),
    witness=st.sampled_from(Witness),
)


@given(evidence)
def test_commit_is_said_only_of_the_very_transaction_still_open_with_its_topics_as_they_were(known: Evidence) -> None:
    itself_and_whole = known.described == ITSELF and known.topic_ids == RECORDED.topic_ids
    assert isinstance(judge(RECORDED, known), Commit) == itself_and_whole


@given(evidence, st.integers(min_value=1))
def test_a_later_start_time_is_never_committed(known: Evidence, later: int) -> None:
    seen = replace(ITSELF, start_ms=RECORDED.start_ms + later)
    assert not isinstance(judge(RECORDED, replace(known, described=seen)), Commit)


@given(evidence)
def test_what_is_lost_says_why(known: Evidence) -> None:
    verdict = judge(RECORDED, known)
    if isinstance(verdict, Lost):
        assert len(verdict.why) > 20


@pytest.mark.parametrize("state", SURELY_COMMITTED)
@pytest.mark.parametrize("confirmed", [True, False])
def test_a_committed_state_with_the_same_start_is_committed_whatever_became_of_the_topics(
    state: BrokerState, confirmed: bool
) -> None:
    known = replace(EVIDENCE, described=replace(ITSELF, state=state), topic_ids={}, confirmed=confirmed)
    assert isinstance(judge(RECORDED, known), AlreadyCommitted)


@pytest.mark.parametrize("state", SURELY_ABORTED)
@pytest.mark.parametrize("producer_epoch", [3, 4])
def test_an_aborted_state_with_the_same_start_is_lost_though_the_abort_raised_the_producer_epoch(
    state: BrokerState, producer_epoch: int
) -> None:
    seen = replace(ITSELF, state=state, producer_epoch=producer_epoch)
    assert isinstance(judge(RECORDED, replace(EVIDENCE, described=seen)), Lost)


def test_an_abort_that_the_broker_reports_outweighs_a_confirmation() -> None:
    seen = replace(ITSELF, state=BrokerState.COMPLETE_ABORT)
    assert isinstance(judge(RECORDED, replace(EVIDENCE, described=seen, confirmed=True)), Lost)


def test_a_transaction_that_is_being_fenced_is_waited_for() -> None:
    seen = replace(ITSELF, state=BrokerState.PREPARE_EPOCH_FENCE)
    assert isinstance(judge(RECORDED, replace(EVIDENCE, described=seen)), Wait)


@pytest.mark.parametrize("state", BrokerState)
def test_a_later_transaction_of_the_same_producer_proves_the_commit(state: BrokerState) -> None:
    seen = replace(ITSELF, state=state, start_ms=RECORDED.start_ms + 1)
    assert isinstance(judge(RECORDED, replace(EVIDENCE, described=seen)), AlreadyCommitted)


@pytest.mark.parametrize(("producer_id", "producer_epoch"), [(8, 3), (7, 4), (8, 0)])
def test_a_later_transaction_of_another_producer_proves_nothing(producer_id: int, producer_epoch: int) -> None:
    seen = Described(BrokerState.ONGOING, producer_id, producer_epoch, RECORDED.start_ms + 1)
    assert isinstance(judge(RECORDED, replace(EVIDENCE, described=seen)), Lost)


def test_an_earlier_transaction_of_the_same_producer_proves_nothing() -> None:
    seen = replace(ITSELF, start_ms=RECORDED.start_ms - 1)
    assert isinstance(judge(RECORDED, replace(EVIDENCE, described=seen)), Lost)


GONE = (None, Described(BrokerState.EMPTY, 7, 4, -1), Described(BrokerState.DEAD, 7, 3, 1_000))


@pytest.mark.parametrize(("seen", "confirmed", "witness"), list(product(GONE, [True, False], Witness)))
def test_without_the_brokers_word_a_confirmation_or_the_witness_decides(
    seen: Described | None, confirmed: bool, witness: Witness
) -> None:
    verdict = judge(RECORDED, replace(EVIDENCE, described=seen, confirmed=confirmed, witness=witness))
    assert isinstance(verdict, AlreadyCommitted if confirmed or witness is Witness.COMMITTED else Lost)


def test_an_open_transaction_into_a_deleted_topic_is_lost_by_the_topics_name() -> None:
    verdict = judge(RECORDED, replace(EVIDENCE, topic_ids={}))
    assert isinstance(verdict, Lost)
    assert "topic out was deleted after" in verdict.why


def test_an_open_transaction_into_a_recreated_topic_is_lost_by_the_topics_name() -> None:
    verdict = judge(RECORDED, replace(EVIDENCE, topic_ids={"out": "id-2"}))
    assert isinstance(verdict, Lost)
    assert "topic out was deleted and created again" in verdict.why


@given(evidence)
def test_a_transaction_that_wrote_to_no_topic_is_never_lost(known: Evidence) -> None:
    assert not isinstance(judge(replace(RECORDED, topic_ids={}), known), Lost)
