"""What a driver makes of the coordinator's events."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator

import pytest

from twopc.driver.attempt import _error_of
from twopc.driver.events import UNREACHABLE_SECONDS, EventWatch
from twopc.errors import CheckpointCorrupted, Fenced
from twopc.protocol.ids import AttemptId
from twopc.protocol.job_events import JobEvent, JobEventKind


class Told:
    """A coordinator's event stream that says what it is given."""

    def __init__(self) -> None:
        self._closed = threading.Event()

    def watch(self, job: str) -> Iterator[JobEvent]:
        self._closed.wait(10)
        return iter(())

    def stop_watching(self) -> None:
        self._closed.set()


class Refused(Told):
    """A coordinator that can't read the job's ledger."""

    def watch(self, job: str) -> Iterator[JobEvent]:
        raise CheckpointCorrupted("job/ledger/000000000003.json is missing")


def test_a_run_does_not_wait_for_the_events_of_a_job_whose_ledger_is_damaged() -> None:
    began = time.monotonic()
    with EventWatch(Refused(), "job", None):
        assert time.monotonic() - began < UNREACHABLE_SECONDS


def watching(events: Iterable[JobEvent], attempt: int) -> EventWatch:
    watch = EventWatch(Told(), "job", None)
    watch.attempt_started(AttemptId(attempt))
    for each in events:
        watch._note(each)
    return watch


def event(kind: str, attempt: int) -> JobEvent:
    return JobEvent(kind=kind, job="job", attempt=AttemptId(attempt), time_ms=0)


@pytest.mark.parametrize("kind", [JobEventKind.ATTEMPT_STARTED, JobEventKind.COMPLETED])
def test_a_greater_attempt_of_another_run_fences_this_one_for_good(kind: str) -> None:
    failure = watching([event(kind, 4)], attempt=3).failure
    assert failure is not None
    error = _error_of(failure)
    assert isinstance(error, Fenced)
    assert not error.restartable
    assert "started attempt 4" in str(error)
    assert "attempt 3" in str(error)


def test_what_another_run_completes_is_not_counted_as_of_this_one() -> None:
    watch = watching([event(JobEventKind.COMPLETED, 4)], attempt=3)
    assert not watch.completed_in_attempt
    assert watch.last_completed == 0


def test_the_own_next_attempt_fences_nothing() -> None:
    watch = watching([event(JobEventKind.ATTEMPT_STARTED, 4)], attempt=3)
    watch.attempt_started(AttemptId(4))
    watch._note(event(JobEventKind.ATTEMPT_STARTED, 4))
    assert watch.failure is None


def test_how_earlier_attempts_ended_is_not_of_this_one() -> None:
    assert watching([event(JobEventKind.FENCED, 2), event(JobEventKind.FINISHED, 2)], attempt=3).failure is None
    assert not watching([event(JobEventKind.FINISHED, 2)], attempt=3).finished


def test_before_the_first_attempt_of_a_run_nothing_fences_it() -> None:
    watch = EventWatch(Told(), "job", None)
    watch._note(event(JobEventKind.ATTEMPT_STARTED, 7))
    assert watch.failure is None
