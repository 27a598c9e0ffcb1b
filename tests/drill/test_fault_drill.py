"""A fault drill of a job with state, on a broker that is not the drill's own: that one is never struck."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.drill.drilled import drilled_with_faults, not_held, scratch_on
from twopc.drill.faults import Kind
from twopc.drill.verdict import DrillResult
from twopc.testing.broker import Broker

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("fault drill")]

JOB_FILE = str(Path(__file__).with_name("drilled_job.py"))


@pytest.fixture(scope="module")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def drilled(broker: Broker, temporary: Path) -> DrillResult:
    return drilled_with_faults(broker.bootstrap_servers, JOB_FILE, 3, 2_000, temporary)


def test_a_job_lives_through_its_faults_exactly_once(drilled: DrillResult) -> None:
    assert not not_held(drilled), not_held(drilled)


def test_every_record_is_judged(drilled: DrillResult) -> None:
    (output,) = [check for check in drilled.checks if check.name == "output"]
    assert output.text.startswith("2,000 records")


def test_the_timeline_tells_the_faults_and_the_checkpoints(drilled: DrillResult) -> None:
    lanes = [moment.kind for moment in drilled.timeline]
    assert lanes.count("faults") >= 3, "one that found nothing to strike is tried again"
    assert lanes.count("checkpoints") > 3


def test_the_plan_names_no_broker_that_is_not_the_drills_own(drilled: DrillResult) -> None:
    assert drilled.settings["broker"] == "not the drill's own: never struck"
    assert not any(kind.value in str(drilled.settings["plan"]) for kind in Kind if kind.needs_own_broker)


def test_the_report_says_how_long_each_recovery_took_and_with_what_it_was_drilled(drilled: DrillResult) -> None:
    assert str(drilled.settings["recoveries"]).count("recovered after ") == 3
    assert (drilled.figures["longest recovery, s"] or 0) > 0
    assert drilled.figures["records read again"] is not None
    assert {"twopc", "python", "confluent-kafka", "seed"} <= drilled.settings.keys()


def test_nothing_is_left_behind(broker: Broker, drilled: DrillResult, temporary: Path) -> None:
    assert (scratch_on(broker.bootstrap_servers), list(temporary.iterdir())) == ([], [])
