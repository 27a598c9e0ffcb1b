"""What happens after a checkpoint has completed: confirmations, retention, the final checkpoint, the end."""

from __future__ import annotations

import pytest

from coordinator.ledger import Ledger
from tests.coordinator.kit import INTERVAL, JOB, SETTINGS, FaultyStorage, Scene, checkpoint
from twopc import events
from twopc.errors import CheckpointCorrupted, ConfigurationError, Fenced, Unavailable
from twopc.protocol.attempts import Traces
from twopc.protocol.ids import AttemptId
from twopc.protocol.messages import Complete, Finish, Trigger
from twopc.protocol.requests import StartAttempt


def on_disk(scene: Scene) -> Ledger:
    return Ledger(JOB, scene.storage)


def test_confirmed_is_told_when_all_subtasks_have_committed() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1, commit=False)
    scene.committed(0, 1)
    assert not scene.told(events.CheckpointConfirmed, 1)
    scene.committed(1, 1)
    assert len(scene.told(events.CheckpointCommitted, 1)) == 2
    assert len(scene.told(events.CheckpointConfirmed, 1)) == 1


def test_a_later_commit_covers_the_earlier_checkpoints_of_that_subtask() -> None:
    scene = Scene()
    scene.run(parallelism=1)
    scene.complete(1, parallelism=1, commit=False)
    scene.complete(2, parallelism=1, commit=False)
    scene.committed(0, 2)
    assert [each.outstanding for each in on_disk(scene).state.completed] == [frozenset(), frozenset()]


def test_a_commit_of_a_checkpoint_that_never_completed_counts_for_nothing() -> None:
    scene = Scene()
    scene.run(parallelism=1)
    scene.wait(INTERVAL)
    scene.committed(0, 1)
    assert not scene.told(events.CheckpointCommitted, 1)


def test_a_commit_of_an_earlier_attempts_checkpoint_counts_for_nothing() -> None:
    scene = Scene()
    scene.run(parallelism=1)
    scene.complete(1, parallelism=1, commit=False)
    scene.run(parallelism=1)
    scene.committed(0, 1)
    assert on_disk(scene).state.completed[0].outstanding == {"t1-0"}


def test_a_confirmation_that_could_not_be_stored_is_stored_later() -> None:
    disk = FaultyStorage()
    scene = Scene(disk)
    scene.run(parallelism=1)
    scene.complete(1, parallelism=1, commit=False)
    disk.is_full = lambda name, data: b"committables-confirmed" in data
    scene.committed(0, 1)
    assert not scene.told(events.CheckpointCommitted, 1)
    disk.is_full = lambda name, data: False
    scene.wait(INTERVAL)
    assert scene.told(events.CheckpointCommitted, 1)
    assert on_disk(scene).state.completed[0].outstanding == frozenset()


def test_the_driver_confirms_what_it_has_settled() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1, commit=False)
    started = scene.start()
    assert started.latest is not None
    assert {committable.name for committable in started.latest.committables} == {"t1-0", "t1-1"}
    assert started.confirmed == frozenset()
    scene.confirm(1, "t1-0", "t1-1")
    assert scene.start().confirmed == {"t1-0", "t1-1"}


def test_only_the_current_attempt_may_confirm_or_stop() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1)
    scene.start()
    scene.attempt = AttemptId(1)
    with pytest.raises(Fenced, match="attempt 1"):
        scene.confirm(1, "t1-0")
    with pytest.raises(Fenced, match="attempt 1"):
        scene.stop()


def test_the_three_newest_checkpoints_are_kept() -> None:
    scene = Scene()
    scene.run()
    for number in range(1, 6):
        scene.complete(number)
    scene.wait(INTERVAL)
    kept = {name for name in scene.storage.parts() if name.startswith("chk-")}
    assert kept == {"chk-3", "chk-4", "chk-5"}


def test_checkpoints_with_outstanding_confirmations_are_kept_and_the_last_confirmed_one_too() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1)
    for number in range(2, 7):
        scene.complete(number, commit=False)
    scene.wait(INTERVAL)
    assert [each.checkpoint_id for each in on_disk(scene).state.completed] == [1, 2, 3, 4, 5, 6]


def test_stop_triggers_a_final_checkpoint_at_once() -> None:
    scene = Scene()
    scene.run()
    scene.stop()
    assert scene.heard(0) == [Trigger(checkpoint(1), final=True)]


def test_the_end_of_all_inputs_triggers_a_final_checkpoint_at_once() -> None:
    scene = Scene()
    scene.run()
    scene.end_of_input(0)
    assert scene.heard(0) == []
    scene.end_of_input(1)
    assert scene.heard(1) == [Trigger(checkpoint(1), final=True)]


def test_periodic_checkpoints_go_on_while_some_subtasks_are_at_the_end_of_their_input() -> None:
    scene = Scene()
    scene.run()
    scene.end_of_input(0)
    scene.complete(1)
    scene.complete(2)
    scene.end_of_input(1)
    assert scene.told(events.CheckpointTriggered)[-1].final


def test_the_final_checkpoint_waits_for_the_one_in_flight() -> None:
    scene = Scene()
    scene.run(parallelism=1)
    scene.wait(INTERVAL)
    scene.stop()
    assert scene.heard(0) == [Trigger(checkpoint(1))]
    scene.ack(0, 1)
    assert scene.heard(0) == [Complete(checkpoint(1)), Trigger(checkpoint(2), final=True)]


def test_a_final_checkpoint_that_is_aborted_is_tried_again() -> None:
    scene = Scene()
    scene.run(parallelism=1)
    scene.stop()
    scene.decline(0, 1)
    scene.heard(0)
    scene.wait(INTERVAL)
    assert scene.heard(0) == [Trigger(checkpoint(2), final=True)]


def test_the_job_finishes_when_all_subtasks_have_committed_the_final_checkpoint() -> None:
    scene = Scene()
    scene.run()
    scene.stop()
    scene.ack(0, 1, "a")
    scene.ack(1, 1)
    scene.committed(0, 1)
    assert not scene.told(events.JobFinished, 1)
    scene.committed(1, 1)
    assert scene.told(events.JobFinished, 1)
    for subtask in (0, 1):
        assert scene.heard(subtask) == [Trigger(checkpoint(1), final=True), Complete(checkpoint(1)), Finish()]


def test_nothing_is_triggered_after_the_final_checkpoint() -> None:
    scene = Scene()
    scene.run(parallelism=1)
    scene.stop()
    scene.ack(0, 1)
    scene.wait(10 * INTERVAL)
    assert not scene.told(events.CheckpointTriggered, 2)


def test_a_stop_that_could_not_be_stored_is_refused() -> None:
    disk = FaultyStorage()
    scene = Scene(disk)
    scene.run()
    disk.is_full = lambda name, data: True
    with pytest.raises(Unavailable, match="No space left"):
        scene.stop()


def test_an_attempt_that_could_not_be_stored_is_refused_and_fences_nobody() -> None:
    disk = FaultyStorage()
    scene = Scene(disk)
    scene.run(parallelism=1)
    scene.heard(0)
    disk.is_full = lambda name, data: True
    with pytest.raises(Unavailable, match="No space left"):
        scene.start()
    assert scene.heard(0) == []


def test_the_first_attempt_starts_afresh() -> None:
    started = Scene().start()
    assert (started.attempt, started.latest, started.restored, started.earlier_attempts) == (1, None, None, False)


def test_an_attempt_is_greater_than_what_left_traces_elsewhere_and_still_the_first_on_this_ledger() -> None:
    jobs = Scene().jobs
    started = jobs.start_attempt(JOB, StartAttempt(1, SETTINGS, "none", traces=Traces(written=AttemptId(6))))
    assert (started.attempt, started.earlier_attempts) == (7, False)


def test_an_attempt_is_greater_than_one_that_was_claimed_and_refused_and_no_ledger_is_refused_for_that() -> None:
    scene = Scene()
    scene.start()
    started = scene.jobs.start_attempt(JOB, StartAttempt(1, SETTINGS, "latest", traces=Traces(claimed=AttemptId(6))))
    assert started.attempt == 7


def test_a_ledger_that_knows_less_than_left_traces_elsewhere_is_refused_and_unchanged() -> None:
    scene = Scene()
    scene.start()
    with pytest.raises(ConfigurationError, match=r"know attempt 6 .* no later one than attempt 1: .*--checkpoint-dir"):
        scene.jobs.start_attempt(JOB, StartAttempt(1, SETTINGS, "latest", traces=Traces(written=AttemptId(6))))
    assert scene.jobs.start_attempt(JOB, StartAttempt(1, SETTINGS, "latest")).attempt == 2


@pytest.mark.parametrize(("writing", "is_refused"), [(0, False), (6, True)])
def test_a_ledger_without_a_past_is_refused_where_an_unknown_attempt_has_output_open(
    writing: int, is_refused: bool
) -> None:
    request = StartAttempt(1, SETTINGS, "latest", traces=Traces(written=AttemptId(6), open=AttemptId(writing)))
    if is_refused:
        with pytest.raises(ConfigurationError, match=r"know attempt 6 .* none of its attempts"):
            Scene().jobs.start_attempt(JOB, request)
    else:
        assert Scene().jobs.start_attempt(JOB, request).attempt == 7


def test_an_attempt_after_which_another_left_traces_elsewhere_is_not_started_again() -> None:
    scene = Scene()
    scene.start()
    again = StartAttempt(
        1, SETTINGS, "latest", traces=Traces(written=AttemptId(6)), restart=True, restart_of=AttemptId(1)
    )
    with pytest.raises(Fenced, match="as attempt 6"):
        scene.jobs.start_attempt(JOB, again)


def test_traces_of_smaller_attempts_change_nothing() -> None:
    scene = Scene()
    scene.start()
    started = scene.jobs.start_attempt(JOB, StartAttempt(1, SETTINGS, "latest", traces=Traces(written=AttemptId(1))))
    assert started.attempt == 2


def test_the_next_attempt_restores_the_latest_checkpoint() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1)
    scene.complete(2)
    started = scene.start()
    assert started.restored is not None
    assert started.restored.checkpoint_id == 2
    assert started.latest == started.restored
    assert started.earlier_attempts


def test_an_older_checkpoint_can_be_restored_while_the_latest_is_there_to_be_settled() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1)
    scene.complete(2)
    started = scene.start(restore_from="1")
    assert started.latest is not None
    assert started.restored is not None
    assert (started.latest.checkpoint_id, started.restored.checkpoint_id) == (2, 1)


def test_a_job_can_be_started_afresh_while_the_latest_is_there_to_be_settled() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1)
    started = scene.start(restore_from="none")
    assert started.latest is not None
    assert started.restored is None


@pytest.mark.parametrize("wanted", ["7", "newest", "", "-1"])
def test_restoring_what_is_not_there_lists_what_is(wanted: str) -> None:
    scene = Scene()
    scene.run()
    scene.complete(1)
    scene.complete(2)
    with pytest.raises(ConfigurationError, match=r"there are: 1, 2"):
        scene.start(restore_from=wanted)
    assert scene.start().attempt == AttemptId(2)


def corrupt(scene: Scene, number: int) -> None:
    scene.storage.delete([f"chk-{number}/metadata.json"])
    scene.storage.create_once(f"chk-{number}/metadata.json", b"{}")


def test_a_corrupt_latest_checkpoint_stops_the_job_and_is_never_passed_over() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1)
    scene.complete(2)
    corrupt(scene, 2)
    for _ in range(2):
        with pytest.raises(CheckpointCorrupted, match=r"chk-2/metadata\.json"):
            scene.start()
    assert on_disk(scene).state.current == 1


def test_who_names_an_older_checkpoint_goes_on_without_the_corrupt_latest_one() -> None:
    scene = Scene()
    scene.run()
    scene.complete(1)
    scene.complete(2)
    corrupt(scene, 2)
    started = scene.start(restore_from="1")
    assert started.restored is not None
    assert started.restored.checkpoint_id == 1
    assert started.latest == started.restored
