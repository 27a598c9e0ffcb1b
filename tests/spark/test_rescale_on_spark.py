"""A job on Spark that goes on with more subtasks while it runs, and with no more than there are task slots."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.counted_job import CountedJob
from twopc.testing.broker import Broker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.proof]


def test_a_job_on_spark_gets_more_subtasks_up_to_its_task_slots(
    broker: Broker, topic: Callable[[], str], tmp_path: Path
) -> None:
    job = CountedJob(broker, topic(), tmp_path)
    with job.running("--master", "local[2]", "-p", "1") as run:
        job.give()
        rescaled = job.rescale(2)
        assert rescaled.code == 0, rescaled.err
        job.give()
        refused = job.rescale(3)
        assert refused.code == 2, refused.err
        assert "parallelism 3 needs as many task slots, but master 'local[2]' has 2" in refused.err
        assert job.shown()["parallelism"] == 2
        job.stop(run)
    assert job.counts() == job.expected()
