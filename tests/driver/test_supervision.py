"""What is done beside subtasks that run, and what ends their attempt."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.job_events import event
from twopc import events
from twopc.config import RunSettings
from twopc.context import JobContext
from twopc.driver.actions import AbortLingering, CommitGlobally, FindShortage, RequestStop
from twopc.driver.effects import Log, Tell
from twopc.driver.host import StoppedEarly, Told
from twopc.driver.progress import AttemptProgress
from twopc.driver.supervision import (
    GLOBAL_COMMIT_RETRY_SECONDS,
    SWEEP_PAUSE_SECONDS,
    SWEEP_RETRY_SECONDS,
    Supervision,
)
from twopc.driver.trimming import TRIM_PAUSE_SECONDS, Trim, TrimSchedule
from twopc.errors import Fenced, GlobalCommitFailed, Unavailable
from twopc.protocol.ids import AttemptId

CONTEXT = JobContext("flights", AttemptId(3), 1, RunSettings())


def supervision(*kinds: type[events.SubtaskAttached | events.CheckpointCompleted]) -> Supervision:
    """Of an attempt of which these events were heard."""
    progress = AttemptProgress(CONTEXT.attempt)
    for number, kind in enumerate(kinds, start=1):
        of_it = {"subtask": 0} if kind is events.SubtaskAttached else {"checkpoint_id": number}
        progress.note(event(kind, attempt=CONTEXT.attempt, **of_it), 0.0)
    return Supervision(CONTEXT, progress)


def due(watched: Supervision, now: float, *, stop: bool = False) -> list[type]:
    return [type(action) for action in watched.due(now, stop_wanted=stop)]


def swept(watched: Supervision, now: float, answer: Any = ()) -> list[Any]:
    return list(watched.answered(AbortLingering(), answer, now))


def test_nothing_is_swept_before_a_checkpoint_has_completed() -> None:
    assert due(supervision(events.SubtaskAttached), 1.0) == []


def test_one_sweeps_when_a_checkpoint_has_completed_and_again_after_a_pause() -> None:
    watched = supervision(events.SubtaskAttached, events.CheckpointCompleted)
    assert due(watched, 1.0) == [AbortLingering]
    assert due(watched, 2.0) == [], "one is under way"
    [line] = swept(watched, 2.0, ["job-1-0-0"])
    assert "job-1-0-0 of a zombie: aborted" in line.message
    assert due(watched, 2.0 + SWEEP_PAUSE_SECONDS - 1) == []
    assert due(watched, 2.0 + SWEEP_PAUSE_SECONDS) == [AbortLingering]


def test_a_sweep_to_which_no_broker_answered_is_repeated_soon() -> None:
    watched = supervision(events.SubtaskAttached, events.CheckpointCompleted)
    due(watched, 1.0)
    swept(watched, 2.0, Unavailable("no broker answers"))
    assert due(watched, 2.0 + SWEEP_RETRY_SECONDS) == [AbortLingering]


def test_a_sweep_that_breaks_ends_no_job_that_is_well() -> None:
    watched = supervision(events.SubtaskAttached, events.CheckpointCompleted)
    due(watched, 1.0)
    [line] = swept(watched, 2.0, ValueError("a bug"))
    assert str(line.error) == "a bug"
    assert watched.look(2.0, stop_wanted=False) is False


def test_a_sweep_that_meets_a_later_run_ends_this_one() -> None:
    watched = supervision(events.SubtaskAttached, events.CheckpointCompleted)
    due(watched, 1.0)
    swept(watched, 2.0, Fenced("attempt 4 has the job"))
    with pytest.raises(Fenced, match="attempt 4"):
        watched.look(2.0, stop_wanted=False)


def test_a_stop_before_a_subtask_has_attached_waits_for_nothing() -> None:
    with pytest.raises(StoppedEarly):
        supervision().look(1.0, stop_wanted=True)


def test_a_last_checkpoint_is_asked_for_once() -> None:
    watched = supervision(events.SubtaskAttached)
    assert due(watched, 1.0, stop=True) == [RequestStop]
    assert due(watched, 2.0, stop=True) == []


def test_a_coordinator_that_does_not_know_of_the_stop_is_not_waited_for() -> None:
    watched = supervision(events.SubtaskAttached)
    due(watched, 1.0, stop=True)
    [line] = watched.answered(RequestStop(CONTEXT), Unavailable("no coordinator"), 2.0)
    assert "could not be asked" in str(line)
    with pytest.raises(Unavailable, match="the coordinator does not answer"):
        watched.look(60.0, stop_wanted=True)


def test_what_subtasks_wait_for_is_asked_until_one_has_attached_and_told_when_it_lasts() -> None:
    watched = supervision()
    told: list[Any] = []
    for second in range(10):
        assert due(watched, second) == [FindShortage]
        told += watched.answered(FindShortage(), "slots", second)
    assert told == [Tell(event(events.WaitingForHost, attempt=CONTEXT.attempt, message="slots"))]
    assert due(supervision(events.SubtaskAttached), 1.0) == []


def test_while_the_end_of_the_job_is_on_its_way_nothing_new_is_asked_for() -> None:
    watched = supervision()
    watched.subtask_ended(None, Told.PERHAPS, 1.0)
    assert due(watched, 1.0, stop=True) == []
    assert watched.look(2.0, stop_wanted=True) is False


def committing(*kinds: type[events.CheckpointCompleted]) -> Supervision:
    """Of an attempt with a global committer, between two sweeps."""
    watched = supervision(events.SubtaskAttached, *kinds)
    watched.commits_globally = True
    watched.sweeps.due_at = 1_000.0
    return watched


def completed(watched: Supervision, number: int) -> None:
    watched.progress.note(event(events.CheckpointCompleted, attempt=CONTEXT.attempt, checkpoint_id=number), 0.0)


def committed(watched: Supervision, now: float, answer: Exception | None = None) -> None:
    list(watched.answered(CommitGlobally(CONTEXT), answer, now))


def test_a_completed_checkpoint_is_committed_globally_where_a_sink_has_a_global_committer() -> None:
    assert due(committing(), 1.0) == []
    assert due(committing(events.CheckpointCompleted), 1.0) == [CommitGlobally]
    watched = committing(events.CheckpointCompleted)
    watched.commits_globally = False
    assert due(watched, 1.0) == []


def test_two_global_commits_are_never_under_way_at_once_and_none_is_left_out() -> None:
    watched = committing(events.CheckpointCompleted)
    assert due(watched, 1.0) == [CommitGlobally]
    completed(watched, 8)
    assert due(watched, 1.1) == [], "one is under way"
    committed(watched, 1.2)
    assert due(watched, 1.2) == [CommitGlobally]
    committed(watched, 1.3)
    assert due(watched, 1.3) == []


def test_a_global_commit_that_fails_ends_the_attempt() -> None:
    watched = committing(events.CheckpointCompleted)
    due(watched, 1.0)
    committed(watched, 1.1, GlobalCommitFailed("the table is locked"))
    assert due(watched, 1.2) == []
    with pytest.raises(GlobalCommitFailed, match="the table is locked"):
        watched.look(1.2, stop_wanted=False)


def test_a_coordinator_that_does_not_answer_is_asked_again_what_is_outstanding() -> None:
    watched = committing(events.CheckpointCompleted)
    due(watched, 1.0)
    committed(watched, 1.1, Unavailable("no answer"))
    assert watched.look(1.2, stop_wanted=False) is False
    assert due(watched, 1.2) == []
    assert watched.deadline == 1.1 + GLOBAL_COMMIT_RETRY_SECONDS
    assert due(watched, 1.1 + GLOBAL_COMMIT_RETRY_SECONDS) == [CommitGlobally]


def trimming(*kinds: type[events.SubtaskAttached | events.CheckpointCompleted]) -> Supervision:
    watched = supervision(*kinds)
    watched.trims = TrimSchedule()
    watched.sweeps.due_at = 1e9
    return watched


def test_nothing_is_trimmed_before_a_checkpoint_of_the_attempt_has_completed_or_where_nothing_has_to_be() -> None:
    assert due(trimming(events.SubtaskAttached), 1.0) == []
    assert Trim not in due(supervision(events.SubtaskAttached, events.CheckpointCompleted), 1.0)


def test_one_trims_when_a_checkpoint_has_completed_and_again_after_a_pause() -> None:
    watched = trimming(events.SubtaskAttached, events.CheckpointCompleted)
    assert due(watched, 1.0) == [Trim]
    assert due(watched, 2.0) == [], "one is under way"
    assert list(watched.answered(Trim(CONTEXT), None, 2.0)) == []
    assert due(watched, 1.0 + TRIM_PAUSE_SECONDS) == []
    assert due(watched, 2.0 + TRIM_PAUSE_SECONDS) == [Trim]


def test_what_could_not_be_trimmed_is_said_once_and_ends_nothing() -> None:
    watched = trimming(events.SubtaskAttached, events.CheckpointCompleted)
    [said] = watched.answered(Trim(CONTEXT), Unavailable("no broker answers"), 1.0)
    [again] = watched.answered(Trim(CONTEXT), Unavailable("no broker answers"), 2.0)
    assert isinstance(said, Log)
    assert isinstance(again, Log)
    assert "were not deleted: no broker answers" in said.message
    assert (said.level, again.level) == (logging.WARNING, logging.DEBUG)
    assert not watched.look(3.0, stop_wanted=False)
