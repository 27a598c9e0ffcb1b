"""kill -9 and SIGSTOP of the broker at moments of a checkpoint and of recovery: the job goes on, nothing is lost."""

from __future__ import annotations

import pytest

from twopc.testing.drill import Drill, judge
from twopc.testing.drill.broker_scenes import BROKER_CELLS, BrokerCell, play_broker
from twopc.testing.local_broker import LocalBroker

pytestmark = pytest.mark.drill


@pytest.mark.parametrize("cell", BROKER_CELLS, ids=str)
def test_the_job_goes_on_and_nothing_is_lost(cell: BrokerCell, broker: LocalBroker, drill: Drill) -> None:
    try:
        play_broker(drill, cell, broker)
    except BaseException as error:
        error.add_note("\n".join(drill.logs()))
        raise
    assert judge(drill) == []
