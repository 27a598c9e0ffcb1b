"""What a run meets that another has taken over from, with a folder of its own: only the output knows of both."""

from __future__ import annotations

import pytest

from tests.driver.test_machine import EmptySink, Played
from twopc import events
from twopc.driver.actions import FindTraces
from twopc.driver.machine import Tick
from twopc.errors import Fenced
from twopc.protocol.attempts import Traces
from twopc.protocol.ids import AttemptId


class TakenOver(EmptySink):
    """One in which a later attempt, of a run that the coordinator knows nothing of, has begun to write."""

    def traces(self) -> Traces:
        return Traces(written=AttemptId(5))


@pytest.mark.parametrize("met", ["Unavailable", "Fenced", "CheckpointDeclined"])
def test_whatever_ends_its_attempt_it_ends_as_fenced_and_tries_nothing_again(met: str) -> None:
    played = Played(sink=TakenOver()).attaches()
    played.hears(events.AttemptFailed, message="its output is missing", restartable=True, error_type=met)
    assert isinstance(played.error, Fenced)
    assert "another run of job 'flights' has taken over from attempt 1 of this one, as attempt 5" in str(played.error)
    assert played.lines == []


def test_brokers_that_do_not_say_who_has_the_job_keep_no_failed_attempt_from_being_followed_by_another() -> None:
    played = Played(holds=FindTraces)
    played.answer(FindTraces, Traces()).attaches()
    played.hears(events.AttemptFailed, message="gone", restartable=True)
    assert played.lines == []
    played.happens(Tick(), 6.0)
    assert "attempt failed: gone; trying again in 0.1 s (restart 1)" in played.lines
