"""How long a stop waits for its last checkpoint."""

from __future__ import annotations

import threading
import time

import pytest

from tests.job_events import event
from twopc import events
from twopc.driver.host import StoppedEarly
from twopc.driver.liveness import PATIENCE_SECONDS, Liveness, hopeless
from twopc.driver.signals import StopSignals
from twopc.protocol.checkpoints import CheckpointKind

LATE = PATIENCE_SECONDS + 1


def seen(*heard_at: tuple[float, events.CoordinatorEvent]) -> Liveness:
    """Of two subtasks that attached at once."""
    liveness = Liveness()
    for number in range(2):
        liveness.note(event(events.SubtaskAttached, subtask=number), 0.0)
    for at, each in heard_at:
        liveness.note(each, at)
    return liveness


def heard(at: float, *subtasks: int) -> list[tuple[float, events.CoordinatorEvent]]:
    return [(at, event(events.SubtaskProgress, subtask=number)) for number in subtasks]


def test_a_last_checkpoint_is_waited_for_while_every_subtask_is_heard_of_however_long_it_takes() -> None:
    assert hopeless(seen(*heard(599, 0, 1)), 2, 0.0, 600.0, accepted=True) is None


def test_nothing_is_given_up_at_once() -> None:
    assert hopeless(seen(), 2, 100.0, 101.0, accepted=False) is None


@pytest.mark.parametrize(
    ("liveness", "accepted", "why"),
    [
        (seen(*heard(LATE, 0)), True, "nothing was heard of subtask 1"),
        (seen(*heard(LATE, 0, 1)), False, "the coordinator does not answer"),
        (
            seen(
                *heard(LATE, 0, 1),
                (LATE, event(events.CheckpointAborted, kind=CheckpointKind.FINAL, message="no leader")),
            ),
            True,
            "it failed (no leader)",
        ),
        (
            seen((0, event(events.CheckpointCompleted, kind=CheckpointKind.FINAL, checkpoint_id=7))),
            True,
            "the brokers do not commit",
        ),
    ],
)
def test_what_can_no_longer_come_is_named(liveness: Liveness, accepted: bool, why: str) -> None:
    said = hopeless(liveness, 2, 0.0, LATE, accepted=accepted)
    assert said is not None
    assert why in said


def ended(*confirmed: int) -> str | None:
    """Say what is awaited once checkpoint 7, the last one, is complete, and these are committed by all subtasks."""
    complete = event(events.CheckpointCompleted, kind=CheckpointKind.FINAL, checkpoint_id=7)
    later = [(1.0, event(events.CheckpointConfirmed, checkpoint_id=number)) for number in confirmed]
    return hopeless(seen((0.0, complete), *later), 2, 0.0, LATE, accepted=True)


def test_a_last_checkpoint_whose_output_is_not_committed_is_not_said_to_be_missing() -> None:
    said = ended(6)
    assert said is not None
    assert said.startswith("stopped before the output of the last checkpoint was committed: it is complete, but the br")


def test_a_global_commit_that_takes_long_is_not_laid_on_the_brokers() -> None:
    said = ended(6, 7)
    assert said is not None
    assert "global commit" in said
    assert "brokers" not in said


def test_a_subtask_that_never_started_is_not_waited_for() -> None:
    assert hopeless(seen(*heard(LATE, 0, 1)), 3, 0.0, LATE, accepted=True) == (
        "stopped without a last checkpoint: 2 of 3 subtasks have started"
    )


def test_a_failed_periodic_checkpoint_says_nothing_of_the_last_one() -> None:
    failed = (LATE, event(events.CheckpointAborted, kind=CheckpointKind.PERIODIC, message="declined"))
    assert hopeless(seen(*heard(LATE, 0, 1), failed), 2, 0.0, LATE, accepted=True) is None


def test_what_is_prepared_is_returned_and_what_it_meets_is_raised() -> None:
    signals = StopSignals()
    assert signals.unless_requested(lambda: 7) == 7
    with pytest.raises(TimeoutError, match="of its own"):
        signals.unless_requested(_timed_out)


def _timed_out() -> None:
    raise TimeoutError("of its own")


def test_nobody_waits_for_what_is_prepared_once_a_stop_is_asked_for() -> None:
    stop, never = threading.Event(), threading.Event()
    threading.Timer(0.1, stop.set).start()
    with pytest.raises(StoppedEarly):
        StopSignals(stop).unless_requested(lambda: never.wait(600))


def test_nothing_is_prepared_after_a_stop() -> None:
    stop = threading.Event()
    stop.set()
    began: list[float] = []
    with pytest.raises(StoppedEarly):
        StopSignals(stop).unless_requested(lambda: began.append(time.monotonic()))
    assert began == []
