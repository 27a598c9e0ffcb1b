from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twopc.errors import CheckpointDeclined, Fenced, Unavailable
from twopc.kafka.output.tracked_producer import TrackedProducer
from twopc.kafka.transactions import slots
from twopc.kafka.transactions.slots import MOST_SLOTS, Slot, SlotPool, SlotState, may_be_taken_again
from twopc.protocol.attempts import MOST_CONCURRENT
from twopc.protocol.ids import CheckpointId

FIRST = 3
WAIT_SECONDS = 60.0


class Maker:
    """Makes slots that have no producer; may be told to fail. The first are made by several threads, in any order."""

    def __init__(self) -> None:
        self.made: list[int] = []
        self.failing = False
        self.fenced = False
        self.asked_when_fenced = 0

    def __call__(self, number: int) -> tuple[str, TrackedProducer]:
        if self.failing:
            raise Unavailable("not now")
        if self.fenced:
            self.asked_when_fenced += 1
            raise Fenced("another run has taken over")
        self.made.append(number)
        return f"id-{number}", cast(TrackedProducer, object())


@pytest.fixture
def maker() -> Maker:
    return Maker()


@pytest.fixture
def pool(maker: Maker) -> Iterator[SlotPool]:
    """Return a pool that adds a slot only when one is asked for."""
    made = SlotPool(maker, FIRST, spare_after_seconds=60)
    yield made
    made.close()


def through(pool: SlotPool, checkpoint: int, *, settle: bool = True) -> str:
    slot = pool.take(WAIT_SECONDS)
    pool.pre_committed(slot, CheckpointId(checkpoint))
    if settle:
        pool.settled(slot, doubtful=False)
    return slot.transactional_id


@given(st.integers(1, 9), st.integers(0, 9))
def test_only_a_later_completed_checkpoint_frees_a_slot(last: int, completed: int) -> None:
    assert may_be_taken_again(CheckpointId(last), CheckpointId(completed)) == (completed > last)


def test_a_slot_is_not_free_when_its_own_checkpoint_has_completed(pool: SlotPool) -> None:
    first = through(pool, 1)
    pool.release(CheckpointId(1))
    assert first not in {pool.take(WAIT_SECONDS).transactional_id for _ in range(FIRST)}


def test_a_slot_is_free_when_a_later_checkpoint_has_completed(pool: SlotPool) -> None:
    first = through(pool, 1)
    pool.release(CheckpointId(2))
    assert first in {pool.take(WAIT_SECONDS).transactional_id for _ in range(FIRST)}


def test_a_slot_is_not_free_while_the_newest_completed_checkpoint_carries_its_transaction(pool: SlotPool) -> None:
    first = through(pool, 1)
    pool.taken(CheckpointId(2))
    pool.release(CheckpointId(2))
    assert first not in {pool.take(WAIT_SECONDS).transactional_id for _ in range(FIRST)}


def test_a_slot_is_free_when_a_checkpoint_has_completed_that_cannot_carry_its_transaction(pool: SlotPool) -> None:
    first = through(pool, 1)
    pool.taken(CheckpointId(2))
    pool.release(CheckpointId(2))
    pool.taken(CheckpointId(3))
    pool.release(CheckpointId(3))
    assert first in {pool.take(WAIT_SECONDS).transactional_id for _ in range(FIRST)}


def test_a_pre_committed_slot_is_never_freed_by_a_completion_alone(pool: SlotPool) -> None:
    pending = through(pool, 1, settle=False)
    pool.release(CheckpointId(9))
    assert pending not in {pool.take(WAIT_SECONDS).transactional_id for _ in range(FIRST)}


def test_three_slots_are_enough_while_every_checkpoint_completes(pool: SlotPool, maker: Maker) -> None:
    for checkpoint in range(1, 50):
        through(pool, checkpoint)
        pool.release(CheckpointId(checkpoint))
    assert sorted(maker.made) == [0, 1, 2]


@pytest.mark.parametrize("in_flight", [1, 2, 3, MOST_CONCURRENT])
def test_with_several_checkpoints_in_flight_two_slots_for_each_and_an_open_one_are_enough(
    maker: Maker, in_flight: int
) -> None:
    pool = SlotPool(maker, FIRST, spare_after_seconds=60)
    pending: list[Slot] = []
    slot = pool.take(WAIT_SECONDS)
    for checkpoint in range(1, 50):
        pool.taken(CheckpointId(checkpoint))
        pool.pre_committed(slot, CheckpointId(checkpoint))
        pending.append(slot)
        slot = pool.take(WAIT_SECONDS)
        if len(pending) == in_flight:
            completed = pending.pop(0)
            pool.settled(completed, doubtful=False)
            pool.release(completed.checkpoint)
    pool.close()
    assert len(maker.made) <= max(FIRST, 2 * in_flight + 1) <= MOST_SLOTS


def test_the_pool_grows_while_checkpoints_abort(pool: SlotPool) -> None:
    assert len({through(pool, checkpoint, settle=False) for checkpoint in range(1, 8)}) == 7


def test_a_spare_is_made_before_it_is_asked_for_when_no_slot_becomes_free(maker: Maker) -> None:
    pool = SlotPool(maker, 1, spare_after_seconds=0.01)
    pool.take(WAIT_SECONDS)
    assert _wait_until(lambda: len(maker.made) == 2)
    pool.close()


def test_a_slot_in_doubt_gets_another_producer_under_the_same_id(pool: SlotPool, maker: Maker) -> None:
    slot = pool.take(WAIT_SECONDS)
    before = slot.producer
    pool.pre_committed(slot, CheckpointId(1))
    pool.settled(slot, doubtful=True)
    pool.release(CheckpointId(2))
    assert _wait_until(lambda: slot.state is SlotState.FREE)
    assert slot.producer is not before
    assert sorted(maker.made) == [0, 0, 1, 2]


def test_a_slot_in_doubt_keeps_its_producer_until_a_later_checkpoint_has_completed(
    pool: SlotPool, maker: Maker
) -> None:
    slot = pool.take(WAIT_SECONDS)
    pool.pre_committed(slot, CheckpointId(1))
    pool.settled(slot, doubtful=True)
    pool.release(CheckpointId(1))
    assert slot.state is SlotState.SETTLED
    assert sorted(maker.made) == [0, 1, 2]


def test_without_a_slot_in_time_the_wait_is_given_up(maker: Maker) -> None:
    pool = SlotPool(maker, 1, spare_after_seconds=60)
    pool.take(WAIT_SECONDS)
    maker.failing = True
    with pytest.raises(Unavailable, match="no transactional producer became ready"):
        pool.take(0.05)
    pool.close()


def test_who_is_fenced_asks_for_no_other_producer_and_the_wait_says_so_at_once(maker: Maker) -> None:
    pool = SlotPool(maker, 1, spare_after_seconds=60)
    pool.take(WAIT_SECONDS)
    maker.fenced = True
    for _ in range(2):
        with pytest.raises(Fenced, match="another run has taken over"):
            pool.take(WAIT_SECONDS)
    assert maker.asked_when_fenced == 1
    pool.close()


def test_too_many_pending_transactions_decline_the_checkpoint(maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "MOST_SLOTS", 2)
    pool = SlotPool(maker, 2, spare_after_seconds=60)
    through(pool, 1, settle=False)
    pool.take(WAIT_SECONDS)
    with pytest.raises(CheckpointDeclined, match="wait for a checkpoint to complete"):
        pool.require_room()
    pool.close()


def _wait_until(holds: Any, seconds: float = WAIT_SECONDS) -> bool:
    waiting = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if holds():
            return True
        waiting.wait(0.01)
    return False
