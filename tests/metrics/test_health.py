"""Health of a driver and of a coordinator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.metrics.kit import IDLE, RUNNING
from twopc.errors import Unavailable
from twopc.metrics.health import CoordinatorHealth, DriverHealth
from twopc.protocol.job_description import JobDescription


def silent() -> Sequence[JobDescription]:
    raise Unavailable("the coordinator is too busy to answer: ask again")


def test_a_coordinator_is_well_while_its_one_thread_answers() -> None:
    assert (CoordinatorHealth(lambda: ()).live(), CoordinatorHealth(lambda: ()).ready()) == ("", "")
    assert "does not answer" in CoordinatorHealth(silent).live()
    assert "does not answer" in CoordinatorHealth(silent).ready()


def test_a_driver_is_ready_while_all_subtasks_are_attached() -> None:
    attached = replace(RUNNING, subtasks=tuple(replace(each, attached=True) for each in RUNNING.subtasks))
    now = RUNNING.started_ms / 1000
    assert DriverHealth(lambda: [attached], lambda: now).ready() == ""
    assert DriverHealth(lambda: [RUNNING]).ready() == "1 of 2 subtasks are attached"
    assert DriverHealth(lambda: [IDLE]).ready() == "no attempt has been started"
    assert DriverHealth(lambda: ()).ready() == "no attempt has been started"


def test_a_driver_whose_coordinator_is_away_is_alive_and_not_ready() -> None:
    assert DriverHealth(silent).live() == ""
    assert "does not answer" in DriverHealth(silent).ready()


def test_a_driver_is_not_ready_while_no_checkpoint_completes() -> None:
    subtasks = tuple(replace(each, attached=True) for each in RUNNING.subtasks)
    assert RUNNING.settings is not None
    job = replace(RUNNING, subtasks=subtasks, settings=replace(RUNNING.settings, interval_ms=2_000))
    last = max(job.started_ms, job.kept[-1].completed_ms) / 1000
    assert DriverHealth(lambda: [job], lambda: last + 20).ready() == ""
    assert DriverHealth(lambda: [job], lambda: last + 21).ready() == "no checkpoint has completed for 21 s"
    quick = replace(job, settings=replace(RUNNING.settings, interval_ms=100))
    assert DriverHealth(lambda: [quick], lambda: last + 9).ready() == ""
    assert "11 s" in DriverHealth(lambda: [quick], lambda: last + 11).ready()
