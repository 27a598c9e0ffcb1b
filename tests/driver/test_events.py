"""What a driver makes of the coordinator's events."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator

import pytest

from tests.job_events import event
from twopc import events
from twopc.driver.events import UNREACHABLE_SECONDS, EventWatch
from twopc.driver.progress import RunProgress, error_of
from twopc.errors import CheckpointCorrupted, Fenced
from twopc.protocol.ids import AttemptId, CheckpointId


class Told:
    """A coordinator's event stream that says what it is given."""

    def __init__(self) -> None:
        self._closed = threading.Event()

    def watch(self, job: str) -> Iterator[events.CoordinatorEvent]:
        self._closed.wait(10)
        return iter(())

    def stop_watching(self) -> None:
        self._closed.set()


class Refused(Told):
    """A coordinator that can't read the job's ledger."""

    def watch(self, job: str) -> Iterator[events.CoordinatorEvent]:
        raise CheckpointCorrupted("job/ledger/000000000003.json is missing")


def test_a_run_does_not_wait_for_the_events_of_a_job_whose_ledger_is_damaged() -> None:
    began = time.monotonic()
    with EventWatch(Refused(), "job", lambda event: None, None):
        assert time.monotonic() - began < UNREACHABLE_SECONDS


def watching(heard: Iterable[events.CoordinatorEvent], attempt: int, latest: int = 0) -> RunProgress:
    progress = RunProgress()
    progress.attempt_started(AttemptId(attempt), CheckpointId(latest))
    for each in heard:
        progress.note(each, 0.0)
    return progress


@pytest.mark.parametrize("kind", [events.AttemptStarted, events.CheckpointCompleted])
def test_a_greater_attempt_of_another_run_fences_this_one_for_good(
    kind: type[events.AttemptStarted | events.CheckpointCompleted],
) -> None:
    failure = watching([event(kind, attempt=4)], attempt=3).current.failure
    assert failure is not None
    error = error_of(failure)
    assert isinstance(error, Fenced)
    assert not error.restartable
    assert "started attempt 4" in str(error)
    assert "attempt 3" in str(error)


def test_what_another_run_completes_is_not_counted_as_of_this_one() -> None:
    progress = watching([event(events.CheckpointCompleted, attempt=4, checkpoint_id=8)], attempt=3)
    assert not progress.current.completed
    assert progress.last_completed == 0


def test_a_checkpoint_that_completed_while_the_stream_of_events_was_broken_is_known_by_the_status() -> None:
    progress = watching(
        [event(events.JobStatus, attempt=3, checkpoint_id=8), event(events.JobStatus, attempt=3, checkpoint_id=8)],
        attempt=3,
        latest=7,
    )
    assert (progress.current.completed, progress.last_completed) == (1, 8)


def test_the_status_of_a_job_that_has_completed_nothing_since_counts_as_nothing() -> None:
    progress = watching([event(events.JobStatus, attempt=3, checkpoint_id=7)], attempt=3, latest=7)
    assert (progress.current.completed, progress.last_completed) == (0, 0)


def test_the_own_next_attempt_fences_nothing() -> None:
    progress = watching([event(events.AttemptStarted, attempt=4)], attempt=3)
    progress.attempt_started(AttemptId(4), CheckpointId(0))
    progress.note(event(events.AttemptStarted, attempt=4), 0.0)
    assert progress.current.failure is None


def test_how_earlier_attempts_ended_is_not_of_this_one() -> None:
    earlier = watching(
        [event(events.AttemptFenced, attempt=2), event(events.JobFinished, attempt=2)], attempt=3
    ).current
    assert (earlier.failure, earlier.finished) == (None, False)


def test_before_the_first_attempt_of_a_run_nothing_fences_it() -> None:
    progress = RunProgress()
    progress.note(event(events.AttemptStarted, attempt=7), 0.0)
    assert progress.current.failure is None
