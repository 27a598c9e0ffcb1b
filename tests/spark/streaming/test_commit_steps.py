"""What a driver does about a batch that Spark's tasks have written before it is asked, step by step."""

from __future__ import annotations

import pytest

from tests.simulation.queries.brokers import State
from tests.simulation.queries.driver import FormatDriver
from tests.simulation.queries.plays import finish
from tests.simulation.queries.world import World
from twopc.errors import ConfigurationError
from twopc.protocol.facts import Committable
from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.spark.streaming.decision import StoredDecisions, WrittenBatch
from twopc.spark.streaming.steps import AbortWritten, Decide, ReadDecisions, commit_steps, given_up


def test_what_was_written_of_a_decided_batch_is_aborted() -> None:
    world = World()
    first = FormatDriver(world)
    while not world.decisions:
        first.go_on()
    first.kill()
    second = FormatDriver(world)
    while world.committed_batches == 0:
        second.go_on()
    assert [each.state for each in world.brokers.transactions.values()] == [State.COMMITTED] * 2 + [State.ABORTED] * 2


def test_a_decided_batch_that_is_lost_as_a_whole_is_made_of_what_was_written_again() -> None:
    world = World()
    first = FormatDriver(world)
    while not world.decisions:
        first.go_on()
    first.kill()
    next(iter(world.brokers.transactions.values())).state = State.ABORTED
    assert finish(world, FormatDriver).is_exact
    assert (0, 2) in world.decisions


ONE, OTHER = (Committable(name, CheckpointId(3), SubtaskIndex(0), {}) for name in ("one", "other"))


def test_what_is_refused_before_it_is_decided_is_aborted() -> None:
    steps = commit_steps(3, WrittenBatch((ONE,)))
    assert steps.send(None) == ReadDecisions(3)
    assert steps.send(StoredDecisions(1)) == AbortWritten((ONE,))
    with pytest.raises(ConfigurationError, match="no decision about batch 2"):
        steps.send(None)


def test_nothing_is_aborted_when_it_is_not_known_whether_a_decision_is_stored() -> None:
    steps = commit_steps(0, WrittenBatch((ONE,)))
    steps.send(None)
    steps.send(StoredDecisions())
    assert isinstance(steps.send(frozenset()), Decide)
    with pytest.raises(ValueError, match="no answer"):
        steps.throw(ValueError("no answer"))


def test_what_other_tasks_wrote_is_given_up_where_a_task_failed() -> None:
    assert given_up([(ONE,), None, (), (OTHER,)]) == (ONE, OTHER)


def test_nothing_is_given_up_where_every_task_has_written() -> None:
    assert given_up([(ONE,), (), (OTHER,)]) == ()
