"""What became of checkpoints and attempts is in the ledger, whichever coordinator it was under."""

from __future__ import annotations

from tests.coordinator.kit import INTERVAL, JOB, TIMEOUT, Scene
from twopc.checkpoints.catalog import read_history
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.history import REMEMBERED, History
from twopc.protocol.messages import Failed
from twopc.protocol.outcomes import AttemptOutcome, CheckpointOutcome
from twopc.storage.memory import MemoryStore


class Site(Scene):
    """A scene whose ledger is read by nothing but its files."""

    def __init__(self) -> None:
        self.root = MemoryStore()
        super().__init__(self.root.within(JOB))

    @property
    def history(self) -> History:
        return read_history(self.root, JOB)

    @property
    def outcomes(self) -> list[tuple[int, CheckpointOutcome]]:
        return [(each.checkpoint_id, each.outcome) for each in self.history.checkpoints]


def test_a_completed_checkpoint_is_remembered_with_its_times_and_size() -> None:
    site = Site()
    site.run()
    triggered = site.clock.now().unix_ms + INTERVAL
    site.complete(1)
    (past,) = site.history.checkpoints
    assert (past.checkpoint_id, past.attempt, past.outcome) == (1, 1, CheckpointOutcome.COMPLETED)
    assert (past.triggered_ms, past.ended_ms, past.size_bytes) == (triggered, triggered, 20)


def test_one_that_is_in_flight_is_remembered_as_such() -> None:
    site = Site()
    site.run()
    site.wait(INTERVAL)
    assert site.outcomes == [(1, CheckpointOutcome.IN_FLIGHT)]


def test_an_aborted_one_is_remembered_with_the_reason_once_the_next_is_triggered() -> None:
    site = Site()
    site.run()
    site.wait(INTERVAL)
    site.decline(0, 1, "no room")
    site.complete(2)
    assert site.outcomes == [(1, CheckpointOutcome.ABORTED), (2, CheckpointOutcome.COMPLETED)]
    first = site.history.checkpoints[0]
    assert (first.reason, first.message) == (FailureReason.CHECKPOINT_DECLINED, "subtask 0 declined: no room")
    assert first.ended_ms == first.triggered_ms == site.history.checkpoints[1].triggered_ms - INTERVAL


def test_a_time_out_is_remembered_with_when_it_was() -> None:
    site = Site()
    site.run()
    site.wait(INTERVAL)
    site.wait(TIMEOUT)
    site.wait(INTERVAL)
    first = site.history.checkpoints[0]
    assert (first.reason, first.ended_ms - first.triggered_ms) == (FailureReason.CHECKPOINT_EXPIRED, TIMEOUT)


def test_a_failed_attempt_is_remembered_with_its_error_and_what_it_took_with_it() -> None:
    site = Site()
    site.run()
    site.wait(INTERVAL)
    site.say(1, Failed("UserCodeError", "record orders[0]@7: map(priced) failed", restartable=True))
    site.run(restart=True)
    first, second = site.history.attempts
    assert (first.outcome, first.reason) == (
        AttemptOutcome.FAILED,
        "UserCodeError: record orders[0]@7: map(priced) failed",
    )
    assert (second.attempt, second.outcome) == (2, AttemptOutcome.RUNNING)
    (past,) = site.history.checkpoints
    assert (past.outcome, past.reason) == (CheckpointOutcome.ABORTED, FailureReason.TASK_FAILURE)


def test_an_attempt_that_a_person_ended_is_remembered_with_why_and_when() -> None:
    site = Site()
    site.run()
    site.wait(INTERVAL)
    site.end("the driver gave up")
    (past,) = site.history.attempts
    assert (past.outcome, past.reason) == (AttemptOutcome.ENDED, "the driver gave up")
    assert past.ended_ms == past.started_ms + INTERVAL
    (in_flight,) = site.history.checkpoints
    assert (in_flight.outcome, in_flight.reason) == (
        CheckpointOutcome.ABORTED,
        FailureReason.CHECKPOINT_COORDINATOR_SHUTDOWN,
    )


def test_a_job_that_is_stopped_has_finished() -> None:
    site = Site()
    site.run()
    site.stop()
    for subtask in (0, 1):
        site.ack(subtask, 1)
    for subtask in (0, 1):
        site.committed(subtask, 1)
    site.wait(INTERVAL)
    assert [each.outcome for each in site.history.attempts] == [AttemptOutcome.FINISHED]
    assert [each.kind for each in site.history.checkpoints] == [CheckpointKind.FINAL]


def test_it_outlives_the_coordinator() -> None:
    site = Site()
    site.run()
    site.complete(1)
    site.wait(INTERVAL)
    site.decline(0, 2)
    site.complete(3)
    before = site.history
    site.restart()
    site.jobs.describe(JOB)
    assert site.history == before


def test_of_what_was_in_flight_when_a_coordinator_was_killed_it_is_said_that_nobody_knows() -> None:
    site = Site()
    site.run()
    site.wait(INTERVAL)
    site.restart()
    site.run()
    assert site.outcomes == [(1, CheckpointOutcome.NOT_KNOWN)]
    assert [each.outcome for each in site.history.attempts] == [AttemptOutcome.TAKEN_OVER, AttemptOutcome.RUNNING]


def test_what_one_coordinator_aborted_and_did_not_store_another_does_not_make_up() -> None:
    site = Site()
    site.run()
    site.wait(INTERVAL)
    site.decline(0, 1)
    site.restart()
    site.run()
    assert site.outcomes == [(1, CheckpointOutcome.NOT_KNOWN)]


def test_an_abort_is_remembered_once_though_the_fact_that_carries_it_could_not_be_stored_at_first() -> None:
    site = Site()
    site.run()
    site.wait(INTERVAL)
    site.decline(0, 1)
    site.complete(2)
    site.complete(3)
    assert [number for number, _ in site.outcomes] == [1, 2, 3]


def test_only_the_last_hundred_are_remembered_over_summaries_too() -> None:
    site = Site()
    site.run(1)
    for number in range(1, REMEMBERED + 31):
        site.complete(number, parallelism=1)
    numbers = [each.checkpoint_id for each in site.history.checkpoints]
    assert numbers == list(range(31, REMEMBERED + 31))


def test_an_aborted_savepoint_keeps_its_label() -> None:
    site = Site()
    site.run()
    site.ask(CheckpointKind.SAVEPOINT, "before-1.2")
    site.wait(0)
    site.decline(0, 1)
    site.complete(2)
    first = site.history.checkpoints[0]
    assert (first.kind, first.label, first.outcome) == (
        CheckpointKind.SAVEPOINT,
        "before-1.2",
        CheckpointOutcome.ABORTED,
    )
