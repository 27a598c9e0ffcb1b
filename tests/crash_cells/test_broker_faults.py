"""kill -9 and SIGSTOP of the broker at moments of a checkpoint and of recovery: the job goes on, nothing is lost."""

from __future__ import annotations

import pytest

from tests.crash_cells.broker_scenes import BROKER_CELLS, BrokerCell, play_broker
from tests.crash_cells.judge import judge
from tests.crash_cells.rig import Rig
from twopc.testing.local_broker import LocalBroker

pytestmark = [pytest.mark.drill, pytest.mark.proof]


@pytest.mark.parametrize("cell", BROKER_CELLS, ids=str)
def test_the_job_goes_on_and_nothing_is_lost(cell: BrokerCell, broker: LocalBroker, rig: Rig) -> None:
    try:
        play_broker(rig, cell, broker)
    except BaseException as error:
        error.add_note("\n".join(rig.logs()))
        raise
    assert judge(rig) == []
