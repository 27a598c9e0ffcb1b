"""When zombies' transactions are looked for beside a running attempt."""

from __future__ import annotations

import threading

from twopc.driver.sweeper import Sweeper
from twopc.errors import Unavailable

PATIENCE_SECONDS = 60


class Sweeps:
    """Counts the sweeps; the first `failing` find no broker."""

    def __init__(self, failing: int = 0) -> None:
        self.count = 0
        self.failing = failing
        self._changed = threading.Condition()

    def __call__(self) -> list[str]:
        with self._changed:
            self.count += 1
            self._changed.notify_all()
            if self.count <= self.failing:
                raise Unavailable("no broker answers")
        return ["job-1-0-0"]

    def reach(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.count >= count, PATIENCE_SECONDS)


def test_it_sweeps_again_and_again_once_it_is_wanted() -> None:
    sweeps, wanted = Sweeps(), threading.Event()
    sweeper = Sweeper(sweeps, wanted.is_set, pause=0.01)
    assert sweeps.count == 0
    wanted.set()
    assert sweeps.reach(3)
    sweeper.close(finished=False)


def test_it_does_not_give_up_when_a_broker_gives_no_answer() -> None:
    sweeps = Sweeps(failing=1)
    sweeper = Sweeper(sweeps, lambda: True, pause=3_600)
    assert sweeps.reach(2)
    sweeper.close(finished=False)


def test_it_sweeps_once_more_when_the_job_has_finished() -> None:
    sweeps = Sweeps()
    sweeper = Sweeper(sweeps, lambda: True, pause=3_600)
    assert sweeps.reach(1)
    sweeper.close(finished=True)
    assert sweeps.count == 2


def test_it_sweeps_no_more_when_the_attempt_has_failed() -> None:
    sweeps = Sweeps()
    sweeper = Sweeper(sweeps, lambda: False, pause=3_600)
    sweeper.close(finished=False)
    assert sweeps.count == 0
