"""A job whose checkpoints are in a bucket: through kill -9 of subtasks, driver and server; and the tools on it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.counted_elsewhere import Played
from tests.object_server.server import ACCESS_KEY, SECRET_KEY, ObjectServer
from twopc.faults.armed_faults import ArmedFault
from twopc.faults.points import CrashPoint
from twopc.testing.broker import Broker

pytestmark = pytest.mark.drill


@pytest.fixture
def played(broker: Broker, object_server: ObjectServer, topic: Callable[[], str], tmp_path: Path) -> Played:
    name, secrets = topic(), (ACCESS_KEY, SECRET_KEY)
    where = object_server.url(f"jobs/{name}")
    played = Played(broker, where, name, tmp_path, access=object_server.environment(), secrets=secrets)
    played.give()
    return played


@pytest.mark.parametrize(
    "fault",
    [
        ArmedFault(CrashPoint.BEFORE_SEAL, checkpoint=2),
        pytest.param(ArmedFault(CrashPoint.COORDINATOR_METADATA_NAMED, checkpoint=2), marks=pytest.mark.proof),
        pytest.param(ArmedFault(CrashPoint.COORDINATOR_IN_PRUNE), marks=pytest.mark.proof),
    ],
    ids=lambda fault: fault.point.name.lower(),
)
def test_a_job_is_exact_through_a_death_while_it_stores(played: Played, fault: ArmedFault) -> None:
    finished = played.run(fault)
    if fault.point.name.startswith("COORDINATOR"):
        assert finished.code == -9
        finished = played.run()
    assert finished.code == 0, finished.err
    played.give()
    again = played.run(ArmedFault(CrashPoint.IN_RESTORE))
    assert again.code == 0, again.err
    played.require_exact()


@pytest.mark.proof
def test_a_job_goes_on_without_checkpoints_while_the_server_is_away_and_is_exact(
    played: Played, object_server: ObjectServer, tmp_path: Path
) -> None:
    def strike() -> None:
        while len(object_server.names(f"jobs/{played.name}/{played.name}/files/")) < 3:
            time.sleep(0.05)
        object_server.kill()
        time.sleep(4)
        object_server.start()
        (tmp_path / "struck").touch()

    striking = threading.Thread(target=strike)
    striking.start()
    finished = played.run(struck=tmp_path / "struck")
    striking.join(120)
    assert finished.code == 0, finished.err
    played.require_exact()
