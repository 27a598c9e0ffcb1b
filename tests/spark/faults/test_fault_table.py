"""Every fault of a cluster that a job has to outlive, on a running `late_flights.py`: exact, record by record.

Three stories, each on a cluster of its own. How long each fault held the job up is logged (`--log-cli-level=INFO`), and
is no matter of the test: `make cluster` tells it of a machine that does nothing else, and restarts all brokers too.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from tests.spark.faults.cluster_job import ClusterJob
from tests.spark.faults.fault_run import play, table
from tests.spark.faults.kinds import BROKERS, KILLS, STOPS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200), pytest.mark.proof]

log = logging.getLogger(__name__)

RATE = 300
PING_TIMEOUT_OF_GRPC_SECONDS = 60


def test_whoever_is_killed_and_whatever_is_missing_at_the_start(light_jvms: dict[str, str], tmp_path: Path) -> None:
    with ClusterJob(tmp_path, workers=0, rate=RATE, environment=light_jvms) as job:
        job.await_word("waiting for 2 task slots, Spark has 0")
        job.cluster.add_worker()
        job.await_word("waiting for 2 task slots, Spark has 1")
        job.cluster.add_worker()
        job.await_rest()
        job.cluster.add_worker()
        recoveries = list(play(job, KILLS))
        wrong = job.finish(all_flights=False)
    log.info("\n%s", table(recoveries))
    assert wrong == []


def test_machines_that_freeze_and_wake_beside_those_that_went_on(light_jvms: dict[str, str], tmp_path: Path) -> None:
    with ClusterJob(tmp_path, workers=4, rate=RATE, environment=light_jvms) as job:
        recoveries = list(play(job, STOPS))
        attempts = job.attempt()
        wrong = job.finish(all_flights=False)
        silences = [int(seconds) for seconds in re.findall(r"has been silent for (\d+) s", job.said())]
    log.info("\n%s", table(recoveries))
    assert wrong == []
    assert [each.attempts for each in recoveries] == [1, 0, 1]
    assert attempts == 3, "who woke has disturbed those that went on"
    assert silences
    assert max(silences) < PING_TIMEOUT_OF_GRPC_SECONDS


def test_brokers_of_three_that_are_killed_or_freeze_and_come_back(light_jvms: dict[str, str], tmp_path: Path) -> None:
    with ClusterJob(tmp_path, workers=2, rate=RATE, environment=light_jvms, brokers=3) as job:
        recoveries = list(play(job, BROKERS))
        wrong = job.finish(all_flights=False)
    log.info("\n%s", table(recoveries))
    assert wrong == []
