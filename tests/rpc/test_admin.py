"""What an operator can ask a real coordinator on loopback; the subtasks are scripted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from coordinator.server import CoordinatorServer
from tests.rpc.kit import JOB, PATIENCE_SECONDS, SETTINGS, ScriptedSubtask, Watcher, eventually, start_attempt
from twopc import events
from twopc.checkpoints.catalog import read_job
from twopc.config import RunSettings
from twopc.errors import ConfigurationError, Unavailable
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.ids import AttemptId
from twopc.protocol.messages import Decline, Failed, Progress, Trigger
from twopc.protocol.requests import EndAttempt
from twopc.rpc import admin_pb2 as pb
from twopc.rpc.admin_client import AdminClient
from twopc.rpc.admin_pb2_grpc import AdminStub
from twopc.rpc.job_client import JobClient
from twopc.storage.local import LocalStore

RARELY = replace(SETTINGS, checkpoint_interval_ms=600_000)
SECONDS = 20.0


class Site:
    """A coordinator, and a job on it whose subtasks do what they are told."""

    def __init__(self, address: str, driver: JobClient, admin: AdminClient) -> None:
        self.address = address
        self.driver = driver
        self.admin = admin
        self.subtasks: list[ScriptedSubtask] = []

    def run(self, settings: RunSettings = RARELY, job: str = JOB, *, restart: bool = False) -> None:
        attempt = start_attempt(self.driver, job, settings, restart=restart).attempt
        self.subtasks = [ScriptedSubtask(self.address, attempt, subtask) for subtask in range(settings.parallelism)]
        if not restart:
            eventually(lambda: all(each.attached for each in self.admin.subtasks(job)), "all subtasks are attached")

    def close(self) -> None:
        for subtask in self.subtasks:
            subtask.close()


@contextmanager
def site_in(folder: Path) -> Iterator[Site]:
    server = CoordinatorServer(LocalStore(folder))
    address = server.start()
    driver = JobClient(address, patience_seconds=PATIENCE_SECONDS)
    with AdminClient(address) as admin:
        site = Site(address, driver, admin)
        try:
            yield site
        finally:
            site.close()
            driver.close()
            server.stop()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with site_in(tmp_path) as running:
        yield running


def test_a_savepoint_is_answered_when_it_is_completed(site: Site, tmp_path: Path) -> None:
    site.run()
    outcome = site.admin.checkpoint(JOB, CheckpointKind.SAVEPOINT, label="before-1.2", timeout=SECONDS)
    assert (outcome.completed, outcome.reason, outcome.message) == (True, None, "")
    (stored,) = read_job(LocalStore(tmp_path), JOB).completed
    assert stored.metadata is not None
    assert (stored.checkpoint_id, stored.metadata.kind, stored.metadata.label) == (
        outcome.checkpoint_id,
        CheckpointKind.SAVEPOINT,
        "before-1.2",
    )
    (kept,) = site.admin.describe(JOB).kept
    assert (kept.checkpoint_id, kept.kind, kept.label) == (outcome.checkpoint_id, "savepoint", "before-1.2")


def test_what_becomes_of_other_checkpoints_is_no_answer(site: Site) -> None:
    site.run(SETTINGS)
    eventually(lambda: site.admin.describe(JOB).completed > 2, "periodic checkpoints complete")
    for request_id in ("one", "two", "three"):
        outcome = site.admin.checkpoint(JOB, CheckpointKind.SAVEPOINT, request_id=request_id, timeout=SECONDS)
        kept = {each.checkpoint_id: each.kind for each in site.admin.describe(JOB).kept}
        assert (outcome.request_id, kept[outcome.checkpoint_id]) == (request_id, CheckpointKind.SAVEPOINT)


def test_a_checkpoint_that_a_subtask_declines_is_answered_with_the_reason(site: Site) -> None:
    site.run()
    other = site.subtasks[1]
    other.answer = lambda message: (
        other.link.send(Decline(message.checkpoint_id, "no room in /mnt/checkpoints/late/chk-1"))
        if isinstance(message, Trigger)
        else None
    )
    outcome = site.admin.checkpoint(JOB, CheckpointKind.MANUAL, timeout=SECONDS)
    assert (outcome.completed, outcome.reason) == (False, FailureReason.CHECKPOINT_DECLINED)
    assert "no room in .../chk-1" in outcome.message
    (failure,) = site.admin.describe(JOB).failures
    assert (failure.reason, failure.kind) == (FailureReason.CHECKPOINT_DECLINED, CheckpointKind.MANUAL)


def test_an_outcome_is_waited_for_no_longer_than_the_caller_wants(site: Site) -> None:
    site.run()
    site.subtasks[1].answer = lambda message: None
    _give_up_waiting(site, "mine")
    eventually(lambda: site.admin.describe(JOB).in_flight[0].acknowledged == (0,), "the other has acknowledged")
    (pending,) = site.admin.describe(JOB).in_flight
    assert (pending.request_id, pending.kind) == ("mine", CheckpointKind.MANUAL)


def test_asking_again_with_the_same_request_joins_the_checkpoint_in_flight(site: Site) -> None:
    site.run()
    site.subtasks[1].answer = lambda message: None
    _give_up_waiting(site, "mine")
    (pending,) = site.admin.describe(JOB).in_flight
    later = threading.Timer(0.2, lambda: site.subtasks[1].acknowledge(pending.checkpoint_id))
    later.start()
    outcome = site.admin.checkpoint(JOB, CheckpointKind.MANUAL, request_id="mine", timeout=SECONDS)
    later.join()
    assert (outcome.completed, outcome.checkpoint_id) == (True, pending.checkpoint_id)


def _give_up_waiting(site: Site, request_id: str) -> None:
    """Ask for a checkpoint that does not complete, once the request has come as far as the coordinator."""
    seconds = 0.3
    while not site.admin.describe(JOB).in_flight:
        with pytest.raises(Unavailable):
            site.admin.checkpoint(JOB, CheckpointKind.MANUAL, request_id=request_id, timeout=seconds)
        seconds *= 2


def test_a_call_that_waits_must_say_for_how_long(site: Site) -> None:
    site.run()
    with grpc.insecure_channel(site.address) as channel:
        stub = AdminStub(channel)  # type: ignore[no-untyped-call]
        for call in (
            lambda: stub.TriggerCheckpoint(pb.TriggerCheckpointRequest(job=JOB, kind="manual")),
            lambda: stub.StopJob(pb.StopJobRequest(job=JOB)),
        ):
            with pytest.raises(grpc.RpcError, match="deadline") as caught:
                call()  # type: ignore[no-untyped-call]
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_job_is_stopped_with_a_final_checkpoint(site: Site, tmp_path: Path) -> None:
    site.run()
    outcome = site.admin.stop(JOB, timeout=SECONDS)
    assert outcome.finished
    newest = read_job(LocalStore(tmp_path), JOB).completed[-1]
    assert newest.metadata is not None
    assert (newest.checkpoint_id, newest.metadata.kind) == (outcome.checkpoint_id, CheckpointKind.FINAL)
    with pytest.raises(ConfigurationError, match="can't be stopped"):
        site.admin.stop(JOB, savepoint=True, timeout=SECONDS)
    with pytest.raises(ConfigurationError, match="no attempt"):
        site.admin.checkpoint(JOB, CheckpointKind.MANUAL, timeout=SECONDS)


def test_the_second_of_two_stops_succeeds_though_the_job_has_ended_by_then(site: Site) -> None:
    site.run()
    assert site.admin.stop(JOB, timeout=SECONDS) == site.admin.stop(JOB, timeout=SECONDS)


def test_a_job_whose_attempt_fails_while_it_stops_is_not_called_finished(site: Site) -> None:
    site.run()
    site.subtasks[1].answer = lambda message: site.subtasks[1].link.send(Failed("UserCodeError", "poison", False))
    outcome = site.admin.stop(JOB, timeout=SECONDS)
    assert (outcome.finished, outcome.checkpoint_id) == (False, 0)
    assert "poison" in outcome.message


def test_a_stop_is_waited_for_over_a_restart_of_the_job(site: Site) -> None:
    site.run()
    failing = site.subtasks
    failing[1].answer = lambda message: failing[1].link.send(Failed("Unavailable", "no broker", True))
    with Watcher(site.driver) as watcher, ThreadPoolExecutor(1) as asking:
        outcome = asking.submit(site.admin.stop, JOB, savepoint=True, label="v1", timeout=SECONDS)
        eventually(lambda: bool(watcher.told(events.AttemptFailed)), "the attempt fails")
        for subtask in failing:
            subtask.close()
        site.run(restart=True)
        assert outcome.result(SECONDS).finished
    assert [(each.kind, each.label) for each in site.admin.describe(JOB).kept] == [
        (CheckpointKind.FINAL_SAVEPOINT, "v1")
    ]


def _fail(site: Site) -> None:
    with Watcher(site.driver) as watcher:
        site.subtasks[1].link.send(Failed("Unavailable", "no broker", True))
        eventually(lambda: bool(watcher.told(events.AttemptFailed)), "the attempt fails")


def _end(site: Site) -> None:
    """End the attempt as a driver does when a process of it was killed."""
    site.driver.ask(JOB, EndAttempt(AttemptId(1), "no broker"))


@pytest.mark.parametrize("end", [_fail, _end], ids=["failed", "ended"])
@pytest.mark.parametrize(
    ("ask", "refused"),
    [
        (lambda admin: admin.rescale(JOB, 3, timeout=SECONDS), "can't be rescaled now"),
        (lambda admin: admin.stop(JOB, timeout=SECONDS), "can't be stopped now"),
        (lambda admin: admin.checkpoint(JOB, CheckpointKind.SAVEPOINT, timeout=SECONDS), "can be taken now"),
    ],
    ids=["rescale", "stop", "savepoint"],
)
def test_who_asks_between_two_attempts_is_told_to_ask_again(
    site: Site, ask: Callable[[AdminClient], object], refused: str, end: Callable[[Site], None]
) -> None:
    site.run()
    end(site)
    with pytest.raises(Unavailable, match=f"{refused}: attempt 1 has ended .*no broker.* ask again when the job runs"):
        ask(site.admin)


def test_who_asked_for_more_subtasks_is_told_at_once_that_the_attempt_was_ended_and_the_next_has_as_many_as_before(
    site: Site,
) -> None:
    site.run()
    ended = site.subtasks
    with Watcher(site.driver) as watcher, ThreadPoolExecutor(1) as asking:
        outcome = asking.submit(site.admin.rescale, JOB, 3, timeout=10 * SECONDS)
        eventually(lambda: bool(watcher.told(events.RescaleRequested)), "the wish is told")
        _end(site)
        for subtask in ended:
            subtask.close()
        site.run(restart=True)
        with pytest.raises(Unavailable, match="the attempt ended first, and attempt 2 has 2 subtasks again; ask again"):
            outcome.result(SECONDS)


def test_nobody_is_told_to_ask_again_where_no_attempt_follows(site: Site) -> None:
    site.run()
    with Watcher(site.driver) as watcher:
        site.subtasks[1].link.send(Failed("UserCodeError", "poison", False))
        eventually(lambda: bool(watcher.told(events.AttemptFailed)), "the attempt fails")
    with pytest.raises(ConfigurationError, match=r"can't be stopped: .*poison"):
        site.admin.stop(JOB, timeout=SECONDS)


def test_a_stop_that_the_next_run_knows_nothing_of_is_not_waited_for(site: Site) -> None:
    site.run()
    asleep = site.subtasks
    for subtask in asleep:
        subtask.answer = lambda _: None
    with ThreadPoolExecutor(1) as asking:
        outcome = asking.submit(site.admin.stop, JOB, timeout=SECONDS)
        eventually(lambda: site.admin.describe(JOB).stop_requested, "the stop is stored")
        for subtask in asleep:
            subtask.close()
        site.run()
        with pytest.raises(Unavailable, match="as attempt 2, which knows nothing of the stop"):
            outcome.result(SECONDS)


def test_a_job_is_described_with_its_subtasks_and_how_far_they_are(site: Site) -> None:
    site.run()
    progress = Progress(10, 7, 3, "t-0", ("t-1",))
    site.subtasks[0].link.send(progress)
    eventually(lambda: site.admin.subtasks(JOB)[0].progress == progress, "the progress arrives")
    job = site.admin.describe(JOB)
    assert (job.job, job.attempt, job.parallelism, job.problem) == (JOB, 1, 2, "")
    assert job.settings is not None
    assert job.settings.interval_ms == RARELY.checkpoint_interval_ms
    assert [(each.subtask, each.attached) for each in job.subtasks] == [(0, True), (1, True)]
    assert job.subtasks == site.admin.subtasks(JOB)


def test_all_jobs_are_listed_those_that_only_have_a_ledger_too(tmp_path: Path) -> None:
    with site_in(tmp_path) as earlier:
        start_attempt(earlier.driver, "asleep", RARELY)
    with site_in(tmp_path) as site:
        site.run()
        site.admin.checkpoint(JOB, CheckpointKind.MANUAL, timeout=SECONDS)
        asleep, awake = site.admin.jobs()
    assert (asleep.job, asleep.attempt, asleep.attached, asleep.newest_checkpoint_id) == ("asleep", 1, 0, 0)
    assert (awake.job, awake.attempt, awake.attached, awake.newest_checkpoint_id) == (JOB, 1, 2, 1)


def test_a_ledger_that_can_not_be_read_hides_no_other_job(tmp_path: Path) -> None:
    with site_in(tmp_path) as earlier:
        start_attempt(earlier.driver, "broken", RARELY)
    entry = next((tmp_path / "broken" / "ledger").iterdir())
    entry.write_bytes(entry.read_bytes()[:-20])
    with site_in(tmp_path) as site:
        site.run()
        broken, fine = site.admin.jobs()
    assert (broken.job, broken.phase) == ("broken", "unreadable")
    assert f"broken/ledger/{entry.name}" in broken.problem
    assert str(tmp_path) not in broken.problem
    assert (fine.job, fine.attached) == (JOB, 2)


def test_looking_at_a_job_that_is_not_there_makes_none(site: Site, tmp_path: Path) -> None:
    site.run()
    for call in (
        lambda: site.admin.describe("nobody"),
        lambda: site.admin.subtasks("nobody"),
        lambda: site.admin.checkpoint("nobody", CheckpointKind.MANUAL, timeout=SECONDS),
        lambda: site.admin.stop("nobody", timeout=SECONDS),
    ):
        with pytest.raises(ConfigurationError, match=f"there are: {JOB}"):
            call()
    assert [each.job for each in site.admin.jobs()] == [JOB]
    assert not (tmp_path / "nobody").exists()


@pytest.mark.parametrize("label", ["../x", "a b", "a/b", "x" * 129, "a\nb", ".", "\u00e4"])
def test_a_label_that_could_become_a_path_is_refused(site: Site, label: str) -> None:
    site.run()
    with pytest.raises(ConfigurationError, match="label"):
        site.admin.checkpoint(JOB, CheckpointKind.SAVEPOINT, label=label, timeout=SECONDS)
    with pytest.raises(ConfigurationError, match="request_id"):
        site.admin.checkpoint(JOB, CheckpointKind.SAVEPOINT, request_id=label, timeout=SECONDS)


@pytest.mark.parametrize("kind", [CheckpointKind.PERIODIC, CheckpointKind.FINAL])
def test_only_a_manual_checkpoint_or_a_savepoint_can_be_asked_for(site: Site, kind: CheckpointKind) -> None:
    site.run()
    with pytest.raises(ConfigurationError, match="manual or savepoint"):
        site.admin.checkpoint(JOB, kind, timeout=SECONDS)


def test_a_coordinator_that_ends_leaves_nobody_waiting(tmp_path: Path) -> None:
    server = CoordinatorServer(LocalStore(tmp_path))
    address = server.start()
    driver = JobClient(address, patience_seconds=PATIENCE_SECONDS)
    with AdminClient(address) as admin, Watcher(driver) as watcher:
        attempt = start_attempt(driver, JOB, RARELY).attempt
        subtasks = [ScriptedSubtask(address, attempt, subtask) for subtask in (0, 1)]
        for subtask in subtasks:
            subtask.answer = lambda message: None
        eventually(lambda: len(watcher.told(events.SubtaskAttached)) == 2, "both are attached")
        ending = threading.Timer(0.3, server.stop)
        ending.start()
        with pytest.raises(Unavailable):
            admin.checkpoint(JOB, CheckpointKind.MANUAL, timeout=SECONDS)
        ending.join()
        for subtask in subtasks:
            subtask.close()
    driver.close()


def test_the_service_is_found_by_reflection(site: Site) -> None:
    with grpc.insecure_channel(site.address) as channel:
        found = ProtoReflectionDescriptorDatabase(channel)
        assert "twopc.rpc.Admin" in set(found.get_services())
        assert found.FindFileContainingSymbol("twopc.rpc.Admin").package == "twopc.rpc"
