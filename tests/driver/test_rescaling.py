"""Another number of subtasks, wanted while an attempt runs: when it ends for that, and what the next one has."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.driver.test_machine import Played
from twopc import events
from twopc.config import RunSettings
from twopc.driver.actions import EndAttempt, StartAttempt, Submit
from twopc.driver.machine import StopRequested
from twopc.driver.rescaling import FindRoom, RefuseRescale
from twopc.errors import Unavailable
from twopc.protocol.ids import CheckpointId


def played() -> Played:
    """One that restarts after no failure, whose first attempt runs."""
    return Played(settings=RunSettings(restart_strategy="none"), holds=FindRoom).attaches()


def wants(run: Played, parallelism: int, request_id: str = "one", after: int = 0) -> Played:
    return run.hears(events.RescaleRequested, parallelism=parallelism, request_id=request_id, after=CheckpointId(after))


def completes(run: Played, checkpoint: int) -> Played:
    return run.hears(events.CheckpointCompleted, checkpoint_id=CheckpointId(checkpoint))


def parallelisms(run: Played) -> list[int]:
    return [len(submit.specs) for submit in run.actions(Submit)]


def test_the_next_attempt_has_as_many_after_a_checkpoint_and_that_is_no_failure() -> None:
    run = wants(played(), 3)
    run.answer(FindRoom, None)
    assert parallelisms(run) == [1], "no checkpoint has completed since"
    completes(run, 1)
    assert parallelisms(run) == [1, 3]
    [_, again] = run.actions(StartAttempt)
    assert (again.restart, again.restore_from, again.context.settings.parallelism) == (True, "latest", 3)
    [end] = run.actions(EndAttempt)
    assert end.reason == "3 subtasks are wanted: the next attempt has so many"
    assert not [line for line in run.lines if "failed" in line]


def test_a_checkpoint_that_completed_before_it_was_asked_does_not_count() -> None:
    run = completes(played(), 1)
    wants(run, 3, after=1).answer(FindRoom, None)
    assert parallelisms(run) == [1]
    assert parallelisms(completes(run, 2)) == [1, 3]


def test_what_the_host_has_no_room_for_is_refused_and_the_attempt_goes_on() -> None:
    run = completes(wants(played(), 9).answer(FindRoom, "no room for 9"), 1)
    [refused] = run.actions(RefuseRescale)
    assert (refused.request_id, refused.message) == ("one", "no room for 9")
    assert parallelisms(run) == [1]


def test_a_host_that_can_t_be_asked_refuses() -> None:
    run = wants(played(), 2).answer(FindRoom, Unavailable("Spark does not answer"))
    [refused] = run.actions(RefuseRescale)
    assert "Spark does not answer" in refused.message


def test_the_latest_wish_counts_and_an_answer_to_one_before_does_not() -> None:
    run = wants(wants(played(), 9, "one"), 2, "two")
    first, second = run.actions(FindRoom)
    assert (first.parallelism, second.parallelism) == (9, 2)
    supervision = run.driver._supervision
    assert supervision is not None
    list(supervision.answered(first, "no room for 9", 1.0))
    assert run.actions(RefuseRescale) == []
    run.answer(FindRoom, None)
    assert parallelisms(completes(run, 1)) == [1, 2]


def test_a_wish_is_looked_at_once_however_often_it_is_heard() -> None:
    run = wants(wants(played(), 2), 2)
    assert len(run.actions(FindRoom)) == 1


def test_whoever_stops_is_not_rescaled() -> None:
    run = wants(played(), 2).answer(FindRoom, None).happens(StopRequested())
    assert parallelisms(completes(run, 1)) == [1]


@pytest.mark.parametrize(("needed", "refused"), [(1, False), (2, True)])
def test_a_host_that_runs_in_the_calling_thread_runs_one(needed: int, refused: bool) -> None:
    from twopc.driver.inline import InlineHost

    assert (FindRoom("one", needed).carry_out(SimpleNamespace(host=InlineHost(1))) is not None) is refused
