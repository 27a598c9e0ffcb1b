"""What a real coordinator serves of jobs whose subtasks are scripted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from coordinator.access import Limits
from coordinator.server import CoordinatorServer
from tests.metrics.kit import ScrapedMetrics
from tests.rpc.kit import JOB, PATIENCE_SECONDS, SETTINGS, ScriptedSubtask, eventually, start_attempt
from twopc.metrics.health import CoordinatorHealth
from twopc.metrics.jobs import JobMetrics
from twopc.protocol.messages import Failed, Progress
from twopc.rpc.job_client import JobClient
from twopc.storage.local import LocalStore

OF_THE_JOB = {"job_name": JOB}


class Site:
    """A coordinator in a folder, and what is scraped of it; `subtasks` are of the attempt that was started last."""

    def __init__(self, folder: Path) -> None:
        self.server = CoordinatorServer(LocalStore(folder))
        self.metrics = JobMetrics(self.server.descriptions.known)
        self.server.observe(self.metrics.note)
        self.address = self.server.start()
        self.driver = JobClient(self.address, patience_seconds=PATIENCE_SECONDS)
        self.subtasks: list[ScriptedSubtask] = []

    def start(self, *, restart: bool = False) -> None:
        for subtask in self.subtasks:
            subtask.close()
        attempt = start_attempt(self.driver, JOB, SETTINGS, restart=restart).attempt
        self.subtasks = [ScriptedSubtask(self.address, attempt, subtask) for subtask in (0, 1)]

    def value(self, name: str, **labels: str) -> float | None:
        return ScrapedMetrics(generate_latest(self.metrics.registry).decode()).value(name, **OF_THE_JOB, **labels)

    def until(self, name: str, holds: Callable[[float], bool], **labels: str) -> None:
        eventually(lambda: holds(self.value(name, **labels) or 0.0), name)

    def close(self) -> None:
        for subtask in self.subtasks:
            subtask.close()
        self.driver.close()
        self.server.stop()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.close()


def test_checkpoints_are_counted_and_timed_as_they_complete(site: Site) -> None:
    site.start()
    site.until("twopc_job_number_of_completed_checkpoints_total", lambda value: value > 3)
    site.until("twopc_job_checkpoint_duration_seconds_count", lambda value: value > 3)
    site.until("twopc_job_commit_duration_seconds_count", lambda value: value > 0)
    assert site.value("twopc_job_subtasks_attached") == 2
    assert (site.value("twopc_job_last_completed_checkpoint_id") or 0) > 3
    assert site.value("twopc_job_attempt") == 1


def test_what_a_subtask_says_is_scraped(site: Site) -> None:
    site.start()
    site.subtasks[1].link.send(Progress(12_345, 7, 3, "late-1-0-0", ("late-1-0-1",)))
    site.until("twopc_subtask_num_records_in_total", lambda value: value == 12_345, subtask_index="1")
    assert site.value("twopc_subtask_num_records_out_total", subtask_index="1") == 7
    assert site.value("twopc_subtask_pending_records", subtask_index="1") == 3


def test_a_failed_attempt_and_its_restart_are_counted(site: Site) -> None:
    site.start()
    site.until("twopc_job_subtasks_attached", lambda value: value == 2)
    site.subtasks[0].link.send(Failed("UserCodeError", "map(priced) failed", restartable=True))
    site.until("twopc_job_attempts_failed_total", lambda value: value == 1, error_type="UserCodeError")
    assert site.value("twopc_job_phase", phase="failed") == 1
    site.start(restart=True)
    site.until("twopc_job_num_restarts_total", lambda value: value == 1)
    site.until("twopc_job_attempt", lambda value: value == 2)


def test_a_scrape_loads_no_job_that_nobody_has_asked_for(site: Site, tmp_path: Path) -> None:
    site.start()
    site.until("twopc_job_last_completed_checkpoint_id", lambda value: value > 0)
    other = CoordinatorServer(LocalStore(tmp_path))
    other.start()
    try:
        assert other.descriptions.known() == ()
    finally:
        other.stop()


def test_a_coordinator_that_was_stopped_is_not_well(tmp_path: Path) -> None:
    server = CoordinatorServer(LocalStore(tmp_path), limits=Limits(answer_seconds=1))
    health = CoordinatorHealth(server.descriptions.known)
    server.start()
    assert health.live() == ""
    server.stop()
    assert health.live() != ""
