"""What is sent is what arrives; what can't be read is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.job_events import event
from tests.rpc import strategies
from twopc import events
from twopc.errors import ConfigurationError, ProtocolViolation
from twopc.protocol.codec import to_json
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import AttemptId
from twopc.protocol.messages import ToCoordinator, ToSubtask
from twopc.protocol.requests import DriverRequest, NoteInput, Request, StopJob, redacted
from twopc.rpc import codec
from twopc.rpc import control_pb2 as pb
from twopc.rpc.fields import decode_event, decode_one, decode_value, encode_event, encode_value
from twopc.rpc.redaction import redact


@given(strategies.from_subtask)
def test_what_a_subtask_says_survives_the_wire(message: ToCoordinator | codec.Attach) -> None:
    wire = codec.encode_from_subtask(message).SerializeToString()
    assert codec.decode_from_subtask(pb.FromSubtask.FromString(wire)) == message


@given(strategies.to_subtask)
def test_what_the_coordinator_says_survives_the_wire(message: ToSubtask) -> None:
    wire = codec.encode_to_subtask(message).SerializeToString()
    assert codec.decode_to_subtask(pb.ToSubtask.FromString(wire)) == message


@given(strategies.job_events)
def test_events_survive_the_wire(event: events.CoordinatorEvent) -> None:
    wire = pb.JobEvents(events_json=[encode_event(event)]).SerializeToString()
    assert [decode_event(data) for data in pb.JobEvents.FromString(wire).events_json] == [event]


@given(strategies.metadata)
def test_metadata_survives_the_wire(metadata: CheckpointMetadata) -> None:
    assert decode_value(CheckpointMetadata, encode_value(metadata)) == metadata


def test_no_metadata_is_no_bytes() -> None:
    assert encode_value(None) == b""
    assert decode_value(CheckpointMetadata, b"") is None


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"7", b'{"subtask": 0}', json.dumps({"state": []}).encode()])
def test_a_snapshot_that_cannot_be_read_is_a_violation(data: bytes) -> None:
    wire = pb.FromSubtask(ack=pb.Ack(checkpoint_id=1, snapshot_json=data))
    with pytest.raises(ProtocolViolation, match="snapshot"):
        codec.decode_from_subtask(wire)


def test_a_message_without_a_body_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation):
        codec.decode_from_subtask(pb.FromSubtask())
    with pytest.raises(ProtocolViolation):
        codec.decode_to_subtask(pb.ToSubtask())


def test_an_event_of_a_class_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"same version on both sides.*'thunder' as its event, not one of "):
        decode_event(b'{"event": "thunder", "job": "orders"}')


@pytest.mark.parametrize(
    ("body", "unknown"),
    [
        ('{"type": "pause-job", "attempt": 1}', "'pause-job' as its type"),
        ('{"type": "stop-job", "attempt": 1, "mood": 7}', "mood, which is unknown"),
    ],
)
def test_a_request_of_a_newer_driver_is_refused_with_what_is_unknown_and_an_older_ones_lacks_only_defaults(
    body: str, unknown: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"a request that this version of twopc does not know.*{unknown}"):
        decode_one(DriverRequest, body.encode(), "a request")
    assert decode_one(DriverRequest, b'{"type": "stop-job", "attempt": 1}', "a request") == StopJob(AttemptId(1))


@pytest.mark.parametrize("request_", [StopJob(AttemptId(1)), NoteInput(AttemptId(2), ("a token=hunter2",))])
def test_what_people_read_of_a_request_is_redacted_and_nothing_else_is_touched(request_: Request[None]) -> None:
    assert redacted(request_, redact) == (
        NoteInput(AttemptId(2), (redact("a token=hunter2"),)) if isinstance(request_, NoteInput) else request_
    )


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"7", b"{}", b"[" * 100_000])
def test_an_event_that_cannot_be_read_is_a_violation(data: bytes) -> None:
    with pytest.raises(ProtocolViolation, match="an event that can't be read"):
        decode_event(data)


def test_a_coordinator_cannot_speak_for_the_driver() -> None:
    told = to_json(event(events.TransactionResumed), events.Event)
    with pytest.raises(ConfigurationError, match="transaction-resumed"):
        decode_event(json.dumps(told).encode())
