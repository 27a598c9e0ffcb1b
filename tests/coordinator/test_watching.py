"""Who watches is told the same from inside the coordinator's process and over gRPC."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from coordinator.access import Limits
from coordinator.server import CoordinatorServer
from tests.rpc.kit import JOB, PATIENCE_SECONDS, SETTINGS, eventually, start_attempt
from twopc import events
from twopc.driver.events import EventSource
from twopc.errors import CheckpointCorrupted, Unavailable
from twopc.protocol.layout import LEDGER
from twopc.rpc.job_client import JobClient
from twopc.storage.local import LocalStore


@dataclass
class Served:
    """A coordinator, a client of it, and what is watched through."""

    server: CoordinatorServer
    client: JobClient
    source: EventSource

    def follow(self, job: str = JOB) -> deque[events.CoordinatorEvent]:
        """Watch on a thread, which ends with the watching; return where its events come."""
        told: deque[events.CoordinatorEvent] = deque()
        threading.Thread(target=lambda: deque(map(told.append, self.source.watch(job))), daemon=True).start()
        eventually(lambda: bool(told), "the status is told")
        return told


@pytest.fixture(params=["inside", "over gRPC"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    server = CoordinatorServer(LocalStore(tmp_path))
    client = JobClient(server.start(), patience_seconds=PATIENCE_SECONDS)
    try:
        yield Served(server, client, server.events if request.param == "inside" else client)
    finally:
        client.close()
        server.stop()


def test_the_status_comes_first_and_then_what_happens(served: Served) -> None:
    told = served.follow()
    start_attempt(served.client, JOB, SETTINGS)
    eventually(lambda: len(told) > 1, "the attempt is told")
    assert [type(event) for event in [*told][:2]] == [events.JobStatus, events.AttemptStarted]


def test_another_job_is_not_told_of(served: Served) -> None:
    told = served.follow("another")
    start_attempt(served.client, JOB, SETTINGS)
    start_attempt(served.client, "another", SETTINGS)
    eventually(lambda: len(told) > 1, "its own attempt is told")
    assert {event.job for event in told} == {"another"}


def test_several_are_told_the_same(served: Served) -> None:
    each = [served.follow() for _ in range(3)]
    start_attempt(served.client, JOB, SETTINGS)
    eventually(lambda: all(len(told) > 1 for told in each), "all are told")
    assert each[0][1] == each[1][1] == each[2][1]


def test_watching_ends_when_it_is_told_to_and_does_not_begin_again(served: Served) -> None:
    thread = threading.Thread(target=lambda: list(served.source.watch(JOB)), daemon=True)
    thread.start()
    served.source.stop_watching()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert list(served.source.watch(JOB)) == []


def test_who_watches_no_longer_is_forgotten(served: Served) -> None:
    served.follow()
    served.source.stop_watching()
    eventually(lambda: not served.server._sessions._watchers, "it is forgotten")


def test_a_job_whose_ledger_is_damaged_can_not_be_watched(served: Served, tmp_path: Path) -> None:
    (tmp_path / JOB / LEDGER).mkdir(parents=True)
    (tmp_path / JOB / LEDGER / "000000000001.json").write_bytes(b"{}")
    with pytest.raises(CheckpointCorrupted, match=r"000000000001\.json"):
        next(iter(served.source.watch(JOB)))


def test_who_watches_a_coordinator_that_does_not_answer_is_told_so(tmp_path: Path) -> None:
    server = CoordinatorServer(LocalStore(tmp_path), limits=Limits(answer_seconds=0.1))
    with pytest.raises(Unavailable, match="too busy"):
        next(iter(server.events.watch(JOB)))
