"""A stream that breaks, a coordinator that restarts, a second coordinator: the job goes on, or is told why not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.events import Attached, SessionId
from coordinator.jobs import Jobs
from tests.coordinator.kit import INTERVAL, JOB, SETTINGS, TIMEOUT, Recorder, Scene, checkpoint
from twopc import events
from twopc.errors import ConfigurationError, Fenced
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import Abort, Complete, FencedOff, Finish, Trigger, Welcome
from twopc.protocol.requests import StartAttempt
from twopc.storage.memory import MemoryStore


def test_the_first_message_on_an_accepted_stream_is_the_welcome() -> None:
    scene = Scene()
    scene.start(parallelism=1)
    first, again = scene.attach(0), scene.attach(0)
    assert scene.outlet.sent == [(first, Welcome()), (again, Welcome())]


def test_a_subtask_that_is_turned_away_is_never_welcomed() -> None:
    scene = Scene()
    scene.start()
    scene.start()
    zombie = scene.attach(0, attempt=1)
    assert [type(message) for session, message in scene.outlet.sent if session == zombie] == [FencedOff]


def test_a_broken_stream_does_not_abort_the_checkpoint_in_flight() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.detach(0)
    scene.attach(0, last=1)
    scene.ack(0, 1)
    scene.ack(1, 1)
    assert scene.told(events.CheckpointCompleted, 1)


def test_a_stream_that_stays_broken_lets_the_checkpoint_time_out() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.detach(0)
    scene.wait(TIMEOUT)
    assert scene.told(events.CheckpointAborted, 1)
    scene.wait(TIMEOUT)
    assert not scene.told(events.CheckpointTriggered, 2)


def test_a_missed_trigger_is_repeated() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.attach(0, last=0)
    assert scene.heard(0) == [Trigger(checkpoint(1))]


def test_a_trigger_that_was_seen_is_not_repeated() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.attach(0, last=1)
    assert scene.heard(0) == []


def test_a_missed_completion_is_repeated_until_it_is_committed() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1, commit=False)
    scene.attach(0, last=1)
    assert scene.heard(0) == [Complete(checkpoint(1))]
    scene.committed(0, 1)
    scene.attach(0, last=1)
    assert scene.heard(0) == []


def test_a_missed_abort_is_repeated() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.decline(1, 1)
    scene.attach(0, last=1)
    (message,) = scene.heard(0)
    assert isinstance(message, Abort)
    assert message.checkpoint_id == 1


def test_the_stream_that_was_replaced_is_hung_up_and_counts_for_nothing() -> None:
    scene = Scene()
    scene.run(parallelism=1)
    scene.wait(INTERVAL)
    old = scene.session_of[0]
    scene.attach(0, last=1)
    assert scene.outlet.hung_up == [old]
    scene.session_of[0] = old
    scene.ack(0, 1)
    assert not scene.told(events.CheckpointCompleted, 1)


def test_a_second_process_for_a_subtask_of_the_same_attempt_fails_the_attempt() -> None:
    scene = Scene()
    scene.run()
    scene.attach(0, pid=4711)
    (message,) = scene.heard(0)
    assert isinstance(message, FencedOff)
    assert scene.told(events.AttemptFailed)[-1].restartable


def test_a_subtask_that_has_forgotten_what_it_acknowledged_fails_the_attempt() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1)
    scene.restart()
    scene.attach(0, last=0)
    (message,) = scene.heard(0)
    assert isinstance(message, FencedOff)
    assert scene.told(events.AttemptFailed)[-1].restartable


def test_after_a_restart_the_same_attempt_goes_on_with_its_interval() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1)
    scene.restart()
    for subtask in (0, 1):
        scene.attach(subtask, last=1)
        scene.heard(subtask)
    scene.wait(INTERVAL)
    assert scene.heard(0) == [Trigger(checkpoint(2))]


def test_after_a_restart_a_completed_checkpoint_is_notified_again() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1, commit=False)
    scene.restart()
    scene.attach(0, last=1)
    assert scene.heard(0) == [Complete(checkpoint(1))]


def test_after_a_restart_the_checkpoint_that_was_in_flight_is_aborted() -> None:
    scene = Scene()
    scene.run()
    scene.wait(INTERVAL)
    scene.restart()
    scene.attach(0, last=1)
    (message,) = scene.heard(0)
    assert isinstance(message, Abort)
    assert message.checkpoint_id == 1


def test_after_a_restart_the_end_of_the_input_is_learned_again() -> None:
    scene = Scene()
    scene.run()
    scene.end_of_input(0)
    scene.restart()
    scene.attach(0, at_end=True)
    scene.attach(1, at_end=True)
    assert scene.heard(0) == [Trigger(checkpoint(1), final=True)]


def test_after_a_restart_a_stop_is_remembered() -> None:
    scene = Scene()
    scene.run(parallelism=1)
    scene.stop()
    scene.restart()
    scene.attach(0, last=1)
    assert Trigger(checkpoint(2), final=True) in scene.heard(0)


def test_after_a_restart_the_job_finishes_when_the_final_checkpoint_is_committed() -> None:
    scene = Scene()
    scene.run(parallelism=1)
    scene.stop()
    scene.ack(0, 1, "t")
    scene.restart()
    scene.attach(0, last=1)
    assert scene.heard(0) == [Complete(checkpoint(1))]
    scene.committed(0, 1)
    assert scene.heard(0) == [Finish()]


def test_a_subtask_that_missed_the_end_is_told_to_finish() -> None:
    scene = Scene()
    scene.run(parallelism=1)
    scene.stop()
    scene.ack(0, 1)
    scene.committed(0, 1)
    scene.restart()
    scene.attach(0, last=1)
    assert scene.heard(0) == [Finish()]
    assert [type(event) for event in scene.jobs.status(JOB)] == [events.JobStatus, events.JobFinished]


def test_a_subtask_beyond_the_parallelism_is_refused() -> None:
    scene = Scene()
    scene.start(parallelism=2)
    with pytest.raises(ConfigurationError, match="no subtask 2"):
        scene.attach(2)


class BusyStorage(MemoryStore):
    """Lets something else happen just before a write."""

    def __init__(self) -> None:
        super().__init__()
        self.before_next_write: Callable[[], None] | None = None

    def create_once(self, name: str, data: bytes) -> None:
        action, self.before_next_write = self.before_next_write, None
        if action is not None:
            action()
        super().create_once(name, data)


class TestTwoCoordinators:
    """A second coordinator on the same checkpoint folder takes the job over by starting an attempt."""

    def second(self, scene: Scene) -> tuple[Scene, Scene]:
        other = Scene(scene.storage)
        other.start(parallelism=1)
        return scene, other

    def test_the_first_one_tells_its_subtasks_and_stops_serving_the_job(self) -> None:
        scene = Scene()
        scene.run(parallelism=1)
        self.second(scene)
        scene.wait(INTERVAL)
        (message,) = scene.heard(0)
        assert isinstance(message, FencedOff)
        assert scene.told(events.AttemptFenced)
        scene.wait(10 * INTERVAL)
        with pytest.raises(Fenced, match=r"another coordinator .* attempt 2 \(pid 7 on here\)"):
            scene.confirm(1)

    def test_a_checkpoint_in_flight_at_the_first_one_can_no_longer_complete(self) -> None:
        scene = Scene()
        scene.run(parallelism=1)
        scene.wait(INTERVAL)
        self.second(scene)
        scene.ack(0, 1)
        assert not any(isinstance(message, Complete) for message in scene.heard(0))
        assert not scene.told(events.CheckpointCompleted, 1)

    def test_who_attaches_to_the_first_one_is_fenced_off(self) -> None:
        scene = Scene()
        scene.run(parallelism=1)
        self.second(scene)
        scene.wait(INTERVAL)
        scene.attach(0)
        (message,) = scene.heard(0)
        assert isinstance(message, FencedOff)

    def test_a_driver_that_restarts_after_a_failure_does_not_take_the_job_back(self) -> None:
        scene = Scene()
        scene.run(parallelism=1)
        scene, other = self.second(scene)
        with pytest.raises(Fenced, match=r"as attempt 2 \(pid 7 on here\)"):
            scene.start(restart_of=1)
        other.attach(0)
        assert other.start(restart_of=2).attempt == 3

    def test_a_driver_that_does_not_know_whether_its_last_attempt_was_started_takes_the_job_over(self) -> None:
        scene = Scene()
        scene.run(parallelism=1)
        self.second(scene)
        assert scene.start(restart=True).attempt == 3

    def test_an_attempt_starts_even_where_the_first_one_is_writing_at_that_moment(self) -> None:
        disk = BusyStorage()
        scene = Scene(disk)
        scene.run(parallelism=1)
        other = Scene(disk)
        disk.before_next_write = lambda: scene.wait(INTERVAL)
        assert other.start(parallelism=1).attempt == AttemptId(2)
        assert scene.told(events.CheckpointTriggered, 1)
        assert not other.told(events.AttemptFenced)

    def test_the_first_one_can_take_the_job_back_with_a_new_attempt(self) -> None:
        scene = Scene()
        scene.run(parallelism=1)
        scene, other = self.second(scene)
        assert scene.start(parallelism=1).attempt == AttemptId(3)
        scene.attach(0)
        scene.wait(INTERVAL)
        assert scene.heard(0) == [Trigger(checkpoint(1))]
        other.attach(0)
        other.wait(INTERVAL)
        assert other.told(events.AttemptFenced)


def test_several_jobs_do_not_meet() -> None:
    scene = Scene()
    disks = {"a": MemoryStore(), "b": MemoryStore()}
    outlet = Recorder()
    jobs = Jobs(lambda job: disks[job], scene.clock, outlet)
    for number, job in enumerate(("a", "b"), start=1):
        jobs.start_attempt(job, StartAttempt(1, SETTINGS, "latest"))
        jobs.attach(
            job,
            Attached(SessionId(number), AttemptId(1), SubtaskIndex(0), CheckpointId(0), False, number, "here"),
        )
    scene.clock.advance(INTERVAL)
    jobs.tick()
    triggers = [(session, message) for session, message in outlet.sent if message != Welcome()]
    assert triggers == [(SessionId(1), Trigger(checkpoint(1))), (SessionId(2), Trigger(checkpoint(1)))]
