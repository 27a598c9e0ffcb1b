"""What a driver does about a batch that its function for batches is given, step by step."""

from __future__ import annotations

import pytest

from tests.simulation.queries.brokers import State
from tests.simulation.queries.driver import Driver
from tests.simulation.queries.plays import finish
from tests.simulation.queries.world import World
from twopc.errors import ConfigurationError, Fenced, TransactionLost
from twopc.spark.streaming.decision import StoredDecisions, WrittenBatch
from twopc.spark.streaming.steps import AbortRun, Decide, Look, ReadDecisions, Step, Steps, Write, batch_steps


def a_decided_batch(states: tuple[State, State]) -> World:
    """Batch 0 was decided, and its driver died; this is what became of its transactions."""
    world = World()
    driver = Driver(world)
    while not world.decisions:
        driver.go_on()
    driver.kill()
    for transaction, state in zip(world.brokers.transactions.values(), states, strict=True):
        transaction.state = state
    return world


@pytest.mark.parametrize(
    "states",
    [(State.ABORTED, State.ABORTED), (State.ABORTED, State.OPEN), (State.OPEN, State.ABORTED)],
    ids=["all lost", "one lost", "the other lost"],
)
def test_a_lost_transaction_of_a_decided_batch_is_written_again_if_none_of_it_was_committed(
    states: tuple[State, State],
) -> None:
    world = a_decided_batch(states)
    assert finish(world, Driver).is_exact
    assert (0, 2) in world.decisions


def test_a_driver_that_sleeps_while_its_batch_is_written_again_commits_none_of_it() -> None:
    world = World()
    sleeper = Driver(world)
    while not world.decisions:
        sleeper.go_on()
    next(iter(world.brokers.transactions.values())).state = State.ABORTED
    finish(world, Driver)
    sleeper.to_the_end()
    assert isinstance(sleeper.error, TransactionLost)
    assert world.is_exact


def test_a_lost_transaction_stops_the_query_by_name_where_another_one_is_committed() -> None:
    world = a_decided_batch((State.COMMITTED, State.ABORTED))
    _, lost = world.brokers.transactions
    with pytest.raises(
        TransactionLost, match=rf"1 of its 2 transactions are lost \({lost}: .*accept_loss=\['{lost}'\]"
    ):
        finish(world, Driver)
    assert world.brokers.visible() == [(0, 0)]


def test_what_a_person_gives_up_holds_up_nothing() -> None:
    world = a_decided_batch((State.COMMITTED, State.ABORTED))
    _, lost = world.brokers.transactions
    finish(world, lambda shared: Driver(shared, accepted=[lost]))
    assert world.brokers.visible() == [each for each in world.everything if each != (0, 1)]


def test_nothing_of_a_batch_is_committed_when_one_of_its_transactions_was_lost_before() -> None:
    world = a_decided_batch((State.OPEN, State.ABORTED))
    steps = batch_steps(0)
    next(steps)
    look = steps.send(StoredDecisions(0, world.decisions[0, 1]))
    assert isinstance(look, Look)


def test_a_batch_that_fails_before_it_is_decided_leaves_nothing_open() -> None:
    steps = batch_steps(0)
    assert steps.send(None) == ReadDecisions(0)
    assert steps.send(StoredDecisions()) == Write(0)
    assert steps.throw(ValueError("a task failed")) == AbortRun()
    with pytest.raises(ValueError, match="a task failed"):
        steps.send(None)


def test_nothing_is_aborted_when_it_is_not_known_whether_a_decision_is_stored() -> None:
    steps = batch_steps(0)
    steps.send(None)
    steps.send(StoredDecisions())
    steps.send(WrittenBatch(()))
    assert isinstance(steps.send(frozenset()), Decide)
    with pytest.raises(ValueError, match="no answer"):
        steps.throw(ValueError("no answer"))


@pytest.mark.parametrize(("batch", "newest"), [(5, None), (5, 3)])
def test_a_batch_whose_predecessor_is_not_decided_is_refused(batch: int, newest: int | None) -> None:
    with pytest.raises(ConfigurationError, match=r"no decision about batch 4 .* first_batch=5"):
        begun(batch_steps(batch), StoredDecisions(newest))


@pytest.mark.parametrize(("batch", "first", "newest"), [(5, 5, None), (5, 5, 2), (0, 0, None), (5, 0, 4)])
def test_a_batch_is_written_where_the_sink_begins_or_the_one_before_is_decided(
    batch: int, first: int, newest: int | None
) -> None:
    assert begun(batch_steps(batch, first), StoredDecisions(newest)) == Write(batch)


def test_a_batch_behind_a_newer_decision_is_refused() -> None:
    with pytest.raises(Fenced, match="Spark runs batch 3, but batch 4 is decided already"):
        begun(batch_steps(3), StoredDecisions(4))


def begun(steps: Steps, known: StoredDecisions) -> Step:
    next(steps)
    return steps.send(known)
