"""What ends a run that was asked to stop while something else ends its attempt."""

from __future__ import annotations

from tests.driver.test_machine import Played
from twopc import events
from twopc.driver.host import Told
from twopc.driver.machine import StopRequested, SubtaskEnded, Tick
from twopc.errors import Unavailable


def test_a_stop_of_a_job_of_which_a_subtask_is_killed_meanwhile_says_that_nothing_is_lost() -> None:
    played = Played().attaches().happens(StopRequested())
    killed = Unavailable("the process of subtask 0 (pid 7) was killed by SIGKILL")
    error = played.happens(SubtaskEnded(killed, Told.NO)).happens(Tick(), 0.2).error
    assert isinstance(error, Unavailable)
    assert "stopped without a last checkpoint: the process of subtask 0" in str(error)
    assert "the next start goes on from the last completed checkpoint" in str(error)


def test_what_no_new_attempt_helps_against_ends_a_job_by_its_own_name_though_it_is_stopped() -> None:
    played = Played().attaches().happens(StopRequested())
    assert str(played.hears(events.AttemptFailed, message="no number", restartable=False).error) == "no number"
