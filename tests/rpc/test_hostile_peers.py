"""Peers that break the rules, by mistake or on purpose: each is refused, and the others notice nothing."""

from __future__ import annotations

import queue
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from coordinator.access import Limits
from coordinator.jobs import Jobs
from coordinator.server import CoordinatorServer
from tests.coordinator.kit import snapshot
from tests.rpc.kit import JOB, PATIENCE_SECONDS, SETTINGS, ScriptedSubtask, Watcher, eventually, start_attempt
from twopc import events
from twopc.config import RunSettings
from twopc.errors import ConfigurationError, Unavailable
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import Ack, Decline, EndOfInput, Progress, ToCoordinator
from twopc.protocol.requests import DriverRequest, StopJob
from twopc.rpc import control_pb2 as pb
from twopc.rpc.admin_client import AdminClient
from twopc.rpc.channel import MESSAGE_BYTES_MAX
from twopc.rpc.codec import Attach, encode_from_subtask
from twopc.rpc.fields import encode_one
from twopc.rpc.job_client import JobClient
from twopc.rpc.subtask_link import SubtaskLink
from twopc.runtime.link import MessageTooLarge
from twopc.storage.local import LocalStore

SEED = 20_261_121
FRAMES = 10_000
STREAM_SECONDS = 60.0
ONE = replace(SETTINGS, parallelism=1)
RARELY = replace(ONE, checkpoint_interval_ms=600_000)
UNKNOWN_FIELD = b"\xba\x3e\x05hello"
"""Field 999, with the five bytes of hello."""


AS_THEY_ARE: tuple[Any, Any] = (None, None)
"""Neither serialised nor deserialised: bytes in, bytes out."""


def _raw(channel: grpc.Channel, method: str) -> Any:
    return channel.unary_unary(f"/twopc.rpc.{method}", *AS_THEY_ARE)


@contextmanager
def serving(folder: Path, **options: Any) -> Iterator[tuple[str, JobClient]]:
    server = CoordinatorServer(LocalStore(folder), **options)
    address = server.start()
    client = JobClient(address, token=options.get("token"), patience_seconds=PATIENCE_SECONDS)
    try:
        yield address, client
    finally:
        client.close()
        server.stop()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, JobClient]]:
    """A coordinator that nobody has used, for those who will be refused, and its folder, which is not there yet."""
    root = tmp_path_factory.mktemp("shared") / "checkpoints"
    with serving(root) as (address, client):
        yield root, address, client


class RawStream:
    """A subtask's stream that carries whatever bytes a test gives it."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        method = self._channel.stream_stream("/twopc.rpc.SubtaskControl/Attach", *AS_THEY_ARE)
        self.call: Any = method(iter(self._outgoing.get, None), timeout=STREAM_SECONDS)

    def __enter__(self) -> RawStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._outgoing.put(None)
        self.call.cancel()
        self._channel.close()

    def say(self, message: ToCoordinator | Attach, more: bytes = b"") -> None:
        self._outgoing.put(encode_from_subtask(message).SerializeToString() + more)

    def say_bytes(self, data: bytes) -> None:
        self._outgoing.put(data)

    def attach(self, attempt: int, job: str = JOB, more: bytes = b"") -> None:
        self.say(Attach(job=job, attempt=AttemptId(attempt), subtask=ONLY, pid=1, host="here"), more)

    def hears(self) -> pb.ToSubtask:
        return pb.ToSubtask.FromString(next(self.call))

    def triggered(self) -> int:
        """Wait for the next trigger; its checkpoint."""
        while not (number := self.hears().trigger.checkpoint_id):
            pass
        return int(number)

    def ends_with(self) -> grpc.StatusCode:
        """Read to the end of the stream; how it ended."""
        with pytest.raises(grpc.RpcError) as caught:
            for _ in self.call:
                pass
        return caught.value.code()


ONLY = snapshot(0).subtask


def acknowledgement(number: int, *transactions: str) -> Ack:
    return Ack(CheckpointId(number), snapshot(0, *transactions, checkpoint_id=number))


def still_serves(address: str, client: JobClient, job_settings: RunSettings = ONE) -> None:
    """A well-behaved job gets its checkpoints."""
    started = start_attempt(client, JOB, job_settings)
    subtask = ScriptedSubtask(address, started.attempt, 0)
    before = started.restored.checkpoint_id if started.restored else 0
    eventually(lambda: subtask.completed() > before, "a checkpoint completes")
    subtask.close()


def test_an_acknowledgement_that_is_replayed_completes_nothing_twice(tmp_path: Path) -> None:
    with serving(tmp_path) as (address, client), Watcher(client) as watcher, RawStream(address) as stream:
        stream.attach(start_attempt(client, JOB, ONE).attempt)
        first = stream.triggered()
        for _ in range(3):
            stream.say(acknowledgement(first, "t"))
        eventually(lambda: bool(watcher.told(events.CheckpointCompleted)), "it completes")
        stream.say(acknowledgement(first, "t"))
        stream.say(acknowledgement(stream.triggered(), "u"))
        eventually(lambda: len(watcher.told(events.CheckpointCompleted)) >= 2, "the next completes")
        ids = [event.checkpoint_id for event in watcher.told(events.CheckpointCompleted)]
    assert ids == sorted(set(ids))


def test_a_subtask_of_an_older_attempt_acknowledges_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as (address, client), Watcher(client) as watcher, RawStream(address) as old:
        old.attach(start_attempt(client, JOB, ONE).attempt)
        old.triggered()
        with RawStream(address) as new:
            new.attach(start_attempt(client, JOB, ONE).attempt)
            current = new.triggered()
            old.say(acknowledgement(current, "of a zombie"))
            with RawStream(address) as zombie:
                zombie.attach(1)
                zombie.say(acknowledgement(current, "of a zombie"))
                assert zombie.hears().WhichOneof("body") == "fenced_off"
            new.say(acknowledgement(current, "t"))
            eventually(lambda: bool(watcher.told(events.CheckpointCompleted)), "the new one's counts")
        assert [event.attempt for event in watcher.told(events.CheckpointAcknowledged)][-1] == 2
        assert not [event for event in watcher.told(events.CheckpointAcknowledged) if event.attempt == 1]


def test_fields_that_it_does_not_know_are_ignored(tmp_path: Path) -> None:
    with serving(tmp_path) as (address, client), Watcher(client) as watcher, RawStream(address) as stream:
        stream.attach(start_attempt(client, JOB, ONE).attempt, more=UNKNOWN_FIELD)
        stream.say(acknowledgement(stream.triggered()), more=UNKNOWN_FIELD)
        eventually(lambda: bool(watcher.told(events.CheckpointCompleted)), "it completes")


def test_a_stream_that_says_nothing_is_ended(tmp_path: Path) -> None:
    with serving(tmp_path, limits=Limits(attach_seconds=0.1)) as (address, _), RawStream(address) as stream:
        assert stream.ends_with() is grpc.StatusCode.CANCELLED


def test_a_message_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path) as (address, client):
        with RawStream(address) as stream:
            stream.attach(start_attempt(client, JOB, ONE).attempt)
            stream.say_bytes(bytes(MESSAGE_BYTES_MAX + 1))
            assert stream.ends_with() is grpc.StatusCode.RESOURCE_EXHAUSTED
        still_serves(address, client)


def test_more_streams_than_the_limit_are_refused_and_those_that_are_open_go_on(tmp_path: Path) -> None:
    with serving(tmp_path, limits=Limits(streams=4)) as (address, client), ExitStack() as open_streams:
        started = start_attempt(client, JOB, ONE)
        subtask = ScriptedSubtask(address, started.attempt, 0)
        open_streams.callback(subtask.close)
        eventually(lambda: subtask.completed() >= 1, "a checkpoint completes")
        streams = [open_streams.enter_context(RawStream(address)) for _ in range(8)]
        eventually(lambda: sum(stream.call.is_active() for stream in streams) == 3, "three more are taken")
        refused = [stream.call.code() for stream in streams if not stream.call.is_active()]
        assert refused == [grpc.StatusCode.RESOURCE_EXHAUSTED] * 5
        reached = subtask.completed()
        eventually(lambda: subtask.completed() > reached, "checkpoints go on")


def test_a_parallelism_beyond_the_streams_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, client), pytest.raises(ConfigurationError, match="limit"):
        start_attempt(client, JOB, replace(ONE, parallelism=4_000_000_000))
    assert not (tmp_path / JOB).exists()


def test_a_subtask_that_floods_is_cut_off_and_another_is_not(tmp_path: Path) -> None:
    busy, idle = threading.Event(), threading.Event()
    idle.set()

    def observe(event: events.Event) -> None:
        if isinstance(event, events.SubtaskProgress):
            busy.set()
            idle.wait(PATIENCE_SECONDS)

    limits = Limits(events_in_flight=10)
    with serving(tmp_path, limits=limits, observers=[observe]) as (address, client):
        attempt = start_attempt(client, JOB, replace(RARELY, parallelism=2)).attempt
        other = ScriptedSubtask(address, attempt, 1)
        with RawStream(address) as flooding:
            flooding.attach(attempt)
            idle.clear()
            for number in range(1_000):
                flooding.say(Progress(number, number, None, None))
            assert busy.wait(PATIENCE_SECONDS)
            other.link.send(EndOfInput())
            assert flooding.ends_with() is grpc.StatusCode.RESOURCE_EXHAUSTED
            idle.set()
            with AdminClient(address) as admin:
                eventually(lambda: [each.attached for each in admin.subtasks(JOB)] == [False, True], "it is let go")
        other.close()


def test_a_subtask_that_says_much_but_not_at_once_is_not_cut_off(tmp_path: Path) -> None:
    limits = Limits(events_in_flight=5)
    with serving(tmp_path, limits=limits) as (address, client), Watcher(client) as watcher:
        subtask = ScriptedSubtask(address, start_attempt(client, JOB, RARELY).attempt, 0)
        for number in range(20):
            subtask.link.send(Progress(number, number, None, None))
            eventually(lambda number=number: len(watcher.told(events.SubtaskProgress)) > number, "it arrives")  # type: ignore[misc]
        subtask.close()
    assert len(watcher.told(events.SubtaskAttached)) == 1


@pytest.mark.parametrize(
    "name",
    [
        *("..", "../elsewhere", "a/b", "a\\b", "%2e%2e", "%252e%252e%2f", "/etc", ".hidden", "a..b", "", " ", "a b"),
        *("a\x00b", "a\nb", "name:", "~", "$HOME", "-rf", "x" * 129, "x" * 100_000, "j\u00f6b", "a\u2024b"),
    ],
    ids=lambda name: ascii(name[:20]),
)
def test_a_name_that_could_become_another_path_is_refused(shared: tuple[Path, str, JobClient], name: str) -> None:
    root, address, client = shared
    with pytest.raises(ConfigurationError):
        start_attempt(client, name, ONE)
    with pytest.raises(ConfigurationError):
        next(client.watch(name))
    with RawStream(address) as stream:
        stream.attach(1, job=name)
        assert stream.ends_with() is grpc.StatusCode.INVALID_ARGUMENT
    assert list(root.parent.rglob("*")) == [root]


def test_a_token_that_is_nearly_right_is_wrong_on_loopback_too(tmp_path: Path) -> None:
    with serving(tmp_path, token="sesame") as (address, _), grpc.insecure_channel(address) as channel:
        call = _raw(channel, "JobControl/Ask")
        for wrong in ("", "s", "sesam", "sesame!", "Sesame", "sesame, Bearer sesame", "x" * 5_000):
            for header in (f"Bearer {wrong}", wrong, f"bearer sesame{wrong}", f"Basic {wrong}"):
                with pytest.raises(grpc.RpcError) as caught:
                    call(b"", metadata=(("authorization", header),), timeout=STREAM_SECONDS)
                assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED, header
                assert "sesame" not in str(caught.value.details())


def test_an_error_that_nobody_foresaw_tells_the_peer_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(f"no such thing in {tmp_path}")

    monkeypatch.setattr(Jobs, "request", broken)
    asked = pb.AskRequest(job=JOB, request_json=encode_one(StopJob(AttemptId(1)), DriverRequest))
    with (
        serving(tmp_path) as (address, _),
        grpc.insecure_channel(address) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        _raw(channel, "JobControl/Ask")(asked.SerializeToString(), timeout=STREAM_SECONDS)
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert str(tmp_path) not in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert str(tmp_path) in caplog.text


@pytest.mark.parametrize(
    "method",
    [
        *("SubtaskControl/Attach", "JobControl/Ask", "JobControl/Watch", "Admin/DescribeJob", "Admin/Subtasks"),
        *("Admin/TriggerCheckpoint", "Admin/StopJob"),
    ],
)
def test_random_messages_are_refused_and_the_coordinator_serves_on(
    tmp_path: Path, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    dice = random.Random(f"{SEED} {method}")
    with serving(tmp_path / "checkpoints") as (address, client):
        with grpc.insecure_channel(address) as channel:
            for _ in range(50):
                data = dice.randbytes(dice.choice([1, 7, 60, 900]))
                call = channel.stream_stream(f"/twopc.rpc.{method}", *AS_THEY_ARE)(iter([data]), timeout=STREAM_SECONDS)
                with pytest.raises(grpc.RpcError) as caught:
                    for _ in call:
                        pass
                assert caught.value.code() in REFUSED, f"{caught.value.code()} for {data.hex()}"
                assert "Traceback" not in str(caught.value.details())
        still_serves(address, client)
    assert [each.name for each in (tmp_path / "checkpoints").iterdir()] == [JOB]
    caplog.clear()


REFUSED = {grpc.StatusCode.INTERNAL, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION}


def test_ten_thousand_frames_of_garbage_at_the_port_do_no_harm(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    with serving(tmp_path) as (address, client):
        sent = 0
        while sent < FRAMES:
            sent += _garbage(address, dice, min(100, FRAMES - sent))
        still_serves(address, client)


def _garbage(address: str, dice: random.Random, frames: int) -> int:
    """Send HTTP/2 frames with random contents on one connection; half of them after a valid beginning."""
    host, _, port = address.rpartition(":")
    begun = dice.random() < 0.5
    beginning = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000") if begun else b""
    data = b"".join(_frame(dice) for _ in range(frames))
    with socket.create_connection((host, int(port)), timeout=STREAM_SECONDS) as connection:
        try:
            connection.sendall(beginning + data)
        except OSError:
            return frames
    return frames


def _frame(dice: random.Random) -> bytes:
    length = dice.choice([0, 4, 17, 300])
    header = length.to_bytes(3, "big") + bytes([dice.randrange(12), dice.randrange(256)])
    return header + dice.randrange(2**31).to_bytes(4, "big") + dice.randbytes(length)


def test_an_acknowledgement_that_no_message_can_hold_is_refused_to_its_sender_and_the_stream_goes_on(
    tmp_path: Path,
) -> None:
    with serving(tmp_path) as (address, client), Watcher(client) as watcher:
        attempt = start_attempt(client, JOB, ONE).attempt
        link = SubtaskLink(address, job=JOB, attempt=attempt, subtask=SubtaskIndex(0))
        link.await_welcome(PATIENCE_SECONDS)
        with pytest.raises(MessageTooLarge, match="4,194,304"):
            link.send(Ack(CheckpointId(1), snapshot(0, "t" * MESSAGE_BYTES_MAX)))
        eventually(lambda: bool(watcher.told(events.CheckpointTriggered)), "a checkpoint is triggered")
        link.send(Decline(watcher.told(events.CheckpointTriggered)[-1].checkpoint_id, "too large"))
        eventually(lambda: bool(watcher.told(events.CheckpointDeclined)), "it is declined")
        link.close()


def test_no_coordinator_is_waited_for_beyond_the_deadline_of_a_call(tmp_path: Path) -> None:
    idle = threading.Event()
    limits = Limits(answer_seconds=0.2)
    server = CoordinatorServer(
        LocalStore(tmp_path), limits=limits, observers=[lambda _: (idle.wait(PATIENCE_SECONDS), None)[1]]
    )
    client = JobClient(server.start(), patience_seconds=0)
    try:
        with pytest.raises(Unavailable, match="too busy"):
            start_attempt(client, JOB, ONE)
    finally:
        idle.set()
        client.close()
        server.stop()
