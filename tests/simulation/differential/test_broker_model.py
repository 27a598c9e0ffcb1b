"""What the model does at moments that a real broker gives no time to look at, or takes days for."""

from __future__ import annotations

import pytest

from tests.simulation.broker_model import BrokerModel
from tests.simulation.transaction_coordinator import NOBODY, Producer
from tests.simulation.transaction_tables import Code
from twopc.config import NO_TIMEOUT_MS
from twopc.kafka.topic_partition import TopicPartition

NAME = "id"
INPUT = TopicPartition("input", 0)


def test_nothing_can_be_asked_of_an_id_while_its_markers_are_written() -> None:
    model = BrokerModel(1, bumps=False)
    producer = begun(model)
    assert model.coordinator.end(NAME, producer, commit=True, version=3, now_ms=3) == (Code.NONE, NOBODY)
    assert model.coordinator.end(NAME, producer, commit=True, version=3, now_ms=4)[0] is Code.CONCURRENT_TRANSACTIONS
    assert model.coordinator.end(NAME, producer, commit=False, version=3, now_ms=4)[0] is Code.INVALID_TXN_STATE
    assert model.coordinator.init_producer_id(NAME, 1_000, 4)[0] is Code.CONCURRENT_TRANSACTIONS
    assert model.coordinator.add_partition(NAME, producer, 0, 4) is Code.CONCURRENT_TRANSACTIONS


def test_a_prepared_transaction_is_not_visible_before_its_markers_are_written() -> None:
    model = BrokerModel(1, bumps=False)
    model.coordinator.end(NAME, begun(model), commit=True, version=3, now_ms=3)
    assert (model.logs[0].read(committed=True), model.logs[0].last_stable_offset) == ([], 0)
    model.finish(NAME, 4)
    assert (model.logs[0].read(committed=True), model.logs[0].last_stable_offset) == (["value"], 2)


def test_an_answer_of_the_newer_end_txn_names_the_producer_that_goes_on_before_the_markers_are_written() -> None:
    model = BrokerModel(1, bumps=True, last_producer_epoch=0)
    producer = begun(model)
    code, successor = model.coordinator.end(NAME, producer, commit=True, version=5, now_ms=3)
    assert (code, model.coordinator.ids[NAME].producer) == (Code.NONE, (producer[0], 1))
    model.finish(NAME, 4)
    assert successor == model.coordinator.ids[NAME].producer == (producer[0] + 1, 0)


def test_a_transaction_without_a_time_out_is_never_too_old() -> None:
    model = BrokerModel(1, bumps=False)
    begun(model, NO_TIMEOUT_MS)
    assert model.coordinator.timed_out(10**15) == []


def test_a_transaction_is_too_old_when_its_time_out_has_passed() -> None:
    model = BrokerModel(1, bumps=False)
    begun(model, 1_000)
    assert [len(model.coordinator.timed_out(at)) for at in (1_002, 1_003)] == [0, 1]


@pytest.mark.parametrize("ended", [True, False])
def test_an_idle_id_is_forgotten_unless_its_transaction_is_open(ended: bool) -> None:
    model = BrokerModel(1, bumps=False)
    producer = begun(model)
    if ended:
        model.coordinator.end(NAME, producer, commit=True, version=3, now_ms=3)
        model.finish(NAME, 4)
    assert model.coordinator.forget(3) == []
    assert model.coordinator.forget(4) == ([NAME] if ended else [])
    answer = model.coordinator.end(NAME, producer, commit=True, version=3, now_ms=5)
    assert answer[0] is (Code.INVALID_PRODUCER_ID_MAPPING if ended else Code.NONE)


def test_a_commit_into_a_topic_that_was_recreated_is_answered_as_if_nothing_were_wrong() -> None:
    model = BrokerModel(1, bumps=False)
    producer = begun(model)
    model.recreate_topic()
    assert model.coordinator.end(NAME, producer, commit=True, version=3, now_ms=3)[0] is Code.NONE
    model.finish(NAME, 4)
    assert model.logs[0].read(committed=False) == []


def test_offsets_come_to_light_with_the_commit_and_are_unstable_before() -> None:
    model = BrokerModel(1, bumps=False)
    producer = begun(model)
    assert model.add_offsets(NAME, producer, 3) is Code.NONE
    assert model.commit_offsets(NAME, producer, {INPUT: (7, "checkpoint=1")}, version=3, now_ms=3) is Code.NONE
    assert model.fetch_offset(INPUT, stable=False) == (Code.NONE, None)
    assert model.fetch_offset(INPUT, stable=True) == (Code.UNSTABLE_OFFSET_COMMIT, None)
    model.coordinator.end(NAME, producer, commit=True, version=3, now_ms=4)
    model.finish(NAME, 5)
    assert model.fetch_offset(INPUT, stable=True) == (Code.NONE, (7, "checkpoint=1"))


def begun(model: BrokerModel, timeout_ms: int = 60_000) -> Producer:
    """One record in an open transaction, begun at 2 ms."""
    code, producer = model.coordinator.init_producer_id(NAME, timeout_ms, 1)
    assert code is Code.NONE
    assert model.produce(NAME, producer, 0, "value", version=12, now_ms=2, sequence=0) is Code.NONE
    return producer
