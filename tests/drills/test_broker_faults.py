"""kill -9 and SIGSTOP of the broker at moments of a checkpoint and of recovery: the job goes on, nothing is lost."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from twopc.testing.drill import Drill, judge
from twopc.testing.drill.broker_scenes import BROKER_CELLS, BrokerCell, play_broker
from twopc.testing.drill.drill import load_input
from twopc.testing.local_broker import LocalBroker

pytestmark = pytest.mark.drill


@pytest.fixture(scope="module")
def drill_input(broker: LocalBroker) -> str:
    name = f"broker-cells-{uuid.uuid4().hex[:6]}"
    load_input(broker.bootstrap_servers, f"{name}-in")
    return name


@pytest.mark.parametrize("cell", BROKER_CELLS, ids=str)
def test_the_job_goes_on_and_nothing_is_lost(
    cell: BrokerCell, broker: LocalBroker, drill_input: str, tmp_path: Path
) -> None:
    number = BROKER_CELLS.index(cell)
    drill = Drill(broker.bootstrap_servers, tmp_path, f"{drill_input}-{number}", f"{drill_input}-in")
    drill.create_output()
    try:
        play_broker(drill, cell, broker)
    except BaseException as error:
        error.add_note("\n".join(drill.logs()))
        raise
    assert judge(drill) == []
