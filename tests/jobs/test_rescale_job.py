"""A job that goes on with more subtasks and with fewer while it runs: one count a key, whoever is killed at that."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.counted_job import CountedJob
from twopc.faults.points import VARIABLE, CrashPoint
from twopc.testing.broker import Broker

PROCESSES = ("--host", "process", "-p", "2")


@pytest.fixture
def job(broker: Broker, topic: Callable[[], str], tmp_path: Path) -> CountedJob:
    return CountedJob(broker, topic(), tmp_path)


@pytest.mark.broker
def test_a_running_job_gets_more_subtasks_and_fewer_and_every_key_keeps_its_count(job: CountedJob) -> None:
    with job.running(*PROCESSES) as run:
        for parallelism, before in ((3, 2), (1, 3), (1, 1)):
            job.give()
            rescaled = job.rescale(parallelism)
            assert rescaled.code == 0, rescaled.err
            said = json.loads(rescaled.out)
            assert (said["parallelism"], said["before"]) == (parallelism, before)
            shown = job.shown()
            assert (shown["attempt"], shown["parallelism"]) == (said["attempt"], parallelism)
            assert (said["restored"] > 0) is (parallelism != before)
        job.give()
        job.stop(run)
    assert job.counts() == job.expected()
    assert "failed" not in job.log


@pytest.mark.drill
@pytest.mark.parametrize(
    "point",
    [CrashPoint.BEFORE_COMMIT, pytest.param(CrashPoint.BEFORE_RESTORE, marks=pytest.mark.proof)],
    ids=lambda point: point.name,
)
def test_a_subtask_that_is_killed_at_it_costs_no_count(job: CountedJob, point: CrashPoint) -> None:
    once = job.folder / "once"
    with job.running(*PROCESSES, **{VARIABLE: f"{point.name},subtask=0,once={once}"}) as run:
        job.give()
        for parallelism in (3, 2):
            rescaled = job.rescale(parallelism)
            assert rescaled.code in (0, 1), rescaled.err  # 1: the attempt failed first
            job.give()
        job.stop(run)
    assert job.counts() == job.expected()
    assert once.exists()
