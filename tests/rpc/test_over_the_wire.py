"""A real coordinator on loopback, real links and clients; the subtasks behind them are scripted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from coordinator.server import CoordinatorServer
from tests.rpc.kit import JOB, PATIENCE_SECONDS, SETTINGS, ScriptedSubtask, Watcher, eventually, start_attempt
from twopc import events
from twopc.checkpoints.catalog import read_job
from twopc.errors import CheckpointCorrupted, ConfigurationError, Fenced, Unavailable
from twopc.protocol.facts import SplitPosition
from twopc.protocol.figures import RECORDS_IN, SPLIT_LAG, STREAM_TIME
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import (
    Decline,
    EndOfInput,
    Failed,
    FencedOff,
    Finish,
    Progress,
    Trigger,
    Welcome,
)
from twopc.protocol.planned_starts import StartsPlanned
from twopc.protocol.requests import ConfirmCommittables, EndAttempt, PlanStarts, StopJob
from twopc.rpc import control_pb2 as pb
from twopc.rpc.channel import MESSAGE_BYTES_MAX
from twopc.rpc.control_pb2_grpc import SubtaskControlStub
from twopc.rpc.job_client import JobClient
from twopc.rpc.subtask_link import SubtaskLink
from twopc.storage.local import LocalStore

ATTEMPT = AttemptId(1)
Closing = Callable[[Callable[[], None]], None]


@pytest.fixture
def closing() -> Iterator[Closing]:
    """Takes what is to be called at the end, last first."""
    actions: list[Callable[[], None]] = []
    yield actions.append
    for action in reversed(actions):
        action()


@pytest.fixture
def serve(tmp_path: Path, closing: Closing) -> Callable[..., tuple[CoordinatorServer, str, JobClient]]:
    """Starts coordinators, all on one checkpoint folder."""

    def start(address: str = "127.0.0.1:0", token: str | None = None) -> tuple[CoordinatorServer, str, JobClient]:
        server = CoordinatorServer(LocalStore(tmp_path), address, token)
        bound = server.start()
        client = JobClient(bound, token=token, patience_seconds=PATIENCE_SECONDS)
        closing(server.stop)
        closing(client.close)
        return server, bound, client

    return start


Serve = Callable[..., tuple[CoordinatorServer, str, JobClient]]


def subtasks(address: str, attempt: AttemptId, closing: Closing, token: str | None = None) -> list[ScriptedSubtask]:
    started = [ScriptedSubtask(address, attempt, subtask, token) for subtask in (0, 1)]
    for subtask in started:
        closing(subtask.close)
    return started


def test_checkpoints_complete_and_are_committed_and_the_job_finishes(
    serve: Serve, closing: Closing, tmp_path: Path
) -> None:
    _, address, client = serve()
    with Watcher(client) as watcher:
        started = start_attempt(client, JOB, SETTINGS)
        running = subtasks(address, started.attempt, closing)
        eventually(
            lambda: len(watcher.told(events.CheckpointConfirmed)) >= 3, "three checkpoints are committed everywhere"
        )
        client.ask(JOB, StopJob(started.attempt))
        eventually(lambda: bool(watcher.told(events.JobFinished)), "the job finishes")
    eventually(lambda: all(subtask.ended for subtask in running), "the subtasks end")
    assert [type(subtask.heard[-1]) for subtask in running] == [Finish, Finish]
    assert isinstance(watcher.events[0], events.JobStatus)
    newest = read_job(LocalStore(tmp_path), JOB).completed[-1]
    assert newest.metadata is not None
    assert newest.metadata.kind == "final"
    assert newest.confirmed == {committable.name for committable in newest.metadata.committables}


def test_the_end_of_the_input_finishes_the_job(serve: Serve, closing: Closing) -> None:
    _, address, client = serve()
    with Watcher(client) as watcher:
        started = start_attempt(client, JOB, replace(SETTINGS, checkpoint_interval_ms=60_000))
        for subtask in subtasks(address, started.attempt, closing):
            subtask.link.send(EndOfInput())
        eventually(lambda: bool(watcher.told(events.JobFinished)), "the job finishes")


def test_the_next_attempt_gets_what_to_settle_and_what_to_restore(serve: Serve, closing: Closing) -> None:
    _, address, client = serve()
    first = start_attempt(client, JOB, SETTINGS)
    running = subtasks(address, first.attempt, closing)
    eventually(lambda: running[0].completed() >= 2, "two checkpoints complete")
    second = start_attempt(client, JOB, SETTINGS)
    eventually(lambda: all(isinstance(each.heard[-1], FencedOff) for each in running), "the old ones are fenced off")
    assert second.attempt == first.attempt + 1
    assert second.restored is not None
    assert second.latest == second.restored
    names = [committable.name for committable in second.restored.committables]
    client.ask(JOB, ConfirmCommittables(second.attempt, second.restored.checkpoint_id, tuple(names)))
    assert start_attempt(client, JOB, SETTINGS).confirmed == set(names)


def test_a_coordinator_that_restarts_goes_on_with_the_same_attempt(serve: Serve, closing: Closing) -> None:
    first, address, client = serve()
    started = start_attempt(client, JOB, SETTINGS)
    running = subtasks(address, started.attempt, closing)
    eventually(lambda: running[0].completed() >= 1, "a checkpoint completes before the restart")
    first.stop()
    before = running[0].completed()
    serve(address)
    eventually(lambda: running[0].completed() > before, "a checkpoint completes after the restart")
    assert not any(isinstance(message, FencedOff) for subtask in running for message in subtask.heard)
    triggered = [message.checkpoint_id for message in running[1].heard if isinstance(message, Trigger)]
    assert triggered == sorted(set(triggered))


def test_what_was_said_while_the_coordinator_was_away_is_not_lost(serve: Serve, closing: Closing) -> None:
    first, address, client = serve()
    started = start_attempt(client, JOB, replace(SETTINGS, checkpoint_interval_ms=60_000))
    running = subtasks(address, started.attempt, closing)
    first.stop()
    for subtask in running:
        subtask.link.send(EndOfInput())
    serve(address)
    eventually(lambda: all(subtask.ended for subtask in running), "the final checkpoint is taken and committed")


def took_over(client: JobClient) -> bool:
    """Start an attempt; False where another coordinator has just stored an entry at the same place."""
    try:
        start_attempt(client, JOB, SETTINGS)
    except Fenced:
        return False
    return True


def test_a_second_coordinator_on_the_same_folder_fences_the_first(serve: Serve, closing: Closing) -> None:
    _, address, client = serve()
    with Watcher(client) as watcher:
        running = subtasks(address, start_attempt(client, JOB, SETTINGS).attempt, closing)
        eventually(lambda: running[0].completed() >= 1, "the first coordinator works")
        _, _, other = serve()
        eventually(lambda: took_over(other), "the second coordinator takes the job over")
        eventually(lambda: bool(watcher.told(events.AttemptFenced)), "the first coordinator says that it is fenced")
    eventually(lambda: all(isinstance(each.heard[-1], FencedOff) for each in running), "its subtasks are told")
    with pytest.raises(Fenced, match="another coordinator"):
        client.ask(JOB, StopJob(ATTEMPT))


def test_what_a_subtask_tells_reaches_those_who_watch(serve: Serve, closing: Closing) -> None:
    _, address, client = serve()
    with Watcher(client) as watcher:
        started = start_attempt(client, JOB, replace(SETTINGS, checkpoint_interval_ms=60_000))
        running = subtasks(address, started.attempt, closing)
        figures = dict(
            (
                RECORDS_IN.by_operator({"in": 1 << 40}),
                SPLIT_LAG.of([(("in", "in[0]"), 3)]),
                STREAM_TIME.of([(("op", "0"), -5)]),
            )
        )
        progress = Progress(10, 7, 3, "late-flights-1-0-1", ("late-flights-1-0-0",), figures=figures)
        running[0].link.send(progress)
        running[1].link.send(Failed("UserCodeError", "flights[3]@17: boom", restartable=False))
        eventually(lambda: bool(watcher.told(events.AttemptFailed)), "the failure arrives")
        eventually(lambda: bool(watcher.told(events.SubtaskProgress)), "the progress arrives")
    (failed,) = watcher.told(events.AttemptFailed)
    assert (failed.subtask, failed.error_type, failed.restartable) == (1, "UserCodeError", False)
    assert watcher.told(events.SubtaskProgress)[0].progress == progress


def test_a_failure_that_is_said_last_still_arrives(serve: Serve, closing: Closing) -> None:
    _, address, client = serve()
    with Watcher(client) as watcher:
        started = start_attempt(client, JOB, SETTINGS)
        subtask = ScriptedSubtask(address, started.attempt, 0)
        subtask.link.send(Failed("Unavailable", "the broker is gone", restartable=True))
        subtask.close()
        eventually(lambda: bool(watcher.told(events.AttemptFailed)), "the failure arrives")


def test_a_decline_and_a_late_acknowledgement_abort_nothing_else(serve: Serve, closing: Closing) -> None:
    _, address, client = serve()
    with Watcher(client) as watcher:
        started = start_attempt(client, JOB, SETTINGS)
        running = subtasks(address, started.attempt, closing)
        running[0].link.send(Decline(CheckpointId(999), "of a checkpoint that nobody triggered"))
        eventually(lambda: len(watcher.told(events.CheckpointCompleted)) >= 2, "checkpoints go on")
        assert not watcher.told(events.AttemptFailed)


def test_a_subtask_of_an_unknown_attempt_is_fenced_off(serve: Serve, closing: Closing) -> None:
    _, address, client = serve()
    start_attempt(client, JOB, SETTINGS)
    subtask = ScriptedSubtask(address, AttemptId(7), 0)
    closing(subtask.close)
    eventually(lambda: subtask.ended, "it is told to end")
    assert isinstance(subtask.heard[-1], FencedOff)


def test_a_subtask_that_is_accepted_learns_it_before_anything_else(serve: Serve, closing: Closing) -> None:
    _, address, client = serve()
    started = start_attempt(client, JOB, SETTINGS)
    running = subtasks(address, started.attempt, closing)
    for subtask in running:
        subtask.link.await_welcome(PATIENCE_SECONDS)
    eventually(lambda: all(subtask.completed() for subtask in running), "what came behind it was not lost")
    assert {type(subtask.heard[0]) for subtask in running} == {Welcome}


def test_a_subtask_that_is_turned_away_waits_no_longer_for_its_welcome(serve: Serve, closing: Closing) -> None:
    _, address, client = serve()
    start_attempt(client, JOB, SETTINGS)
    zombie = ScriptedSubtask(address, AttemptId(7), 0)
    closing(zombie.close)
    with pytest.raises(Fenced, match="attempt 7 is not the current one"):
        zombie.link.await_welcome(PATIENCE_SECONDS)


def test_a_welcome_that_never_comes_is_missed_after_a_bounded_time() -> None:
    link = SubtaskLink("127.0.0.1:1", job=JOB, attempt=AttemptId(1), subtask=SubtaskIndex(0))
    try:
        with pytest.raises(Unavailable, match="has not been accepted"):
            link.await_welcome(0.05)
    finally:
        link.close()


def test_refusals_come_back_as_our_errors_with_their_message(serve: Serve, tmp_path: Path) -> None:
    _, _, client = serve()
    with pytest.raises(ConfigurationError, match="can't be used"):
        start_attempt(client, "../elsewhere", SETTINGS)
    with pytest.raises(ConfigurationError, match="there are: none"):
        start_attempt(client, JOB, SETTINGS, restore_from="3")
    start_attempt(client, JOB, SETTINGS)
    with pytest.raises(Fenced, match="attempt 9"):
        client.ask(JOB, StopJob(AttemptId(9)))
    client.ask(JOB, EndAttempt(AttemptId(9), "not mine"))
    assert not (tmp_path.parent / "elsewhere").exists()


def test_a_corrupt_ledger_is_named_without_a_path_of_the_machine(serve: Serve, tmp_path: Path) -> None:
    first, _, client = serve()
    start_attempt(client, JOB, SETTINGS)
    first.stop()
    newest = sorted((tmp_path / JOB / "ledger").iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:-20])
    _, _, client = serve()
    with pytest.raises(CheckpointCorrupted, match=f"{JOB}/ledger/{newest.name}") as caught:
        start_attempt(client, JOB, SETTINGS)
    assert str(tmp_path) not in str(caught.value)


def test_no_coordinator_is_said_so_in_a_bounded_time() -> None:
    client = JobClient("127.0.0.1:1", patience_seconds=0)
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        client.wait_ready(timeout=0.2)
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"):
        start_attempt(client, JOB, SETTINGS)
    client.close()


def test_a_token_opens_the_door_and_nothing_else_does(serve: Serve, closing: Closing) -> None:
    _, address, client = serve(token="open sesame")
    started = start_attempt(client, JOB, SETTINGS)
    running = subtasks(address, started.attempt, closing, token="open sesame")
    eventually(lambda: running[0].completed() >= 1, "with the token, it works")
    for wrong in (None, "open barley"):
        stranger = JobClient(address, token=wrong, patience_seconds=0)
        closing(stranger.close)
        with pytest.raises(ConfigurationError, match="token"):
            start_attempt(stranger, JOB, SETTINGS)
        with pytest.raises(ConfigurationError, match="token"):
            next(stranger.watch(JOB))
        intruder = ScriptedSubtask(address, started.attempt, 0, token=wrong)
        closing(intruder.close)
        eventually(lambda intruder=intruder: intruder.ended, "a subtask without it is refused")  # type: ignore[misc]


@pytest.mark.parametrize(
    "first", [pb.FromSubtask(), pb.FromSubtask(committed=pb.Committed(checkpoint_id=1))], ids=["empty", "no attach"]
)
def test_a_stream_that_does_not_begin_with_attach_is_refused(serve: Serve, first: pb.FromSubtask) -> None:
    _, address, _ = serve()
    with grpc.insecure_channel(address) as channel:
        call = SubtaskControlStub(channel).Attach(iter([first]))  # type: ignore[no-untyped-call]
        with pytest.raises(grpc.RpcError) as caught:
            next(call)
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "Traceback" not in str(caught.value.details())


def test_a_port_in_use_is_said_so(serve: Serve, tmp_path: Path) -> None:
    _, address, _ = serve()
    second = CoordinatorServer(LocalStore(tmp_path), address)
    with pytest.raises(ConfigurationError, match="in use"):
        second.start()


def test_health_and_reflection_answer(serve: Serve) -> None:
    _, address, _ = serve()
    with grpc.insecure_channel(address) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        services = set(ProtoReflectionDescriptorDatabase(channel).get_services())
    assert {"twopc.rpc.SubtaskControl", "twopc.rpc.JobControl"} <= services


def test_many_subtasks_and_watchers_do_not_starve_each_other(serve: Serve, closing: Closing) -> None:
    _, address, client = serve()
    watchers = [Watcher(client) for _ in range(10)]
    for watcher in watchers:
        watcher.__enter__()
        closing(lambda watcher=watcher: watcher.__exit__(None, None, None))  # type: ignore[misc]
    started = start_attempt(client, JOB, replace(SETTINGS, parallelism=40))
    running = [ScriptedSubtask(address, started.attempt, subtask) for subtask in range(40)]
    for subtask in running:
        closing(subtask.close)
    eventually(lambda: all(subtask.completed() >= 1 for subtask in running), "all of them hear of a completion")
    eventually(lambda: all(watcher.told(events.CheckpointCompleted) for watcher in watchers), "all who watch are told")


def test_where_reading_begins_is_stored_for_the_next_attempt(serve: Serve) -> None:
    _, _, client = serve()
    first = start_attempt(client, JOB, SETTINGS)
    start = SplitPosition("in[0]", 0, [70, "id"])
    planned = StartsPlanned(first.attempt, "Latest()", (start,))
    client.ask(JOB, PlanStarts(planned))
    assert first.planned is None
    assert start_attempt(client, JOB, SETTINGS).planned == planned


def test_an_attempt_begins_with_more_metadata_than_a_message_to_the_coordinator_may_hold(
    serve: Serve, closing: Closing
) -> None:
    _, address, client = serve()
    long = "t" * (MESSAGE_BYTES_MAX * 3 // 4)
    with Watcher(client) as watcher:
        attempt = start_attempt(client, JOB, replace(SETTINGS, checkpoint_interval_ms=500)).attempt
        for subtask in (0, 1):
            closing(ScriptedSubtask(address, attempt, subtask, transactions=(f"{long}{subtask}",)).close)
        eventually(lambda: bool(watcher.told(events.CheckpointCompleted)), "a checkpoint completes")
    started = start_attempt(client, JOB, SETTINGS)
    assert started.latest is not None
    assert {f"{long}0", f"{long}1"} <= {committable.name for committable in started.latest.committables}
