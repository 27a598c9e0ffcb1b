"""Messages to their wire form and back; total both ways. What can't be decoded raises ProtocolViolation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar, assert_never

from twopc.errors import ProtocolViolation
from twopc.protocol.attempts import CheckpointSettings
from twopc.protocol.checkpoints import CheckpointKind, FailureReason
from twopc.protocol.facts import NOT_OF_THIS_SHAPE, CheckpointMetadata, SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.job_events import JobEvent
from twopc.protocol.messages import (
    Abort,
    Ack,
    Committed,
    Complete,
    Decline,
    Drain,
    EndOfInput,
    Failed,
    FencedOff,
    Finish,
    Progress,
    ToCoordinator,
    ToSubtask,
    Trigger,
    Welcome,
)
from twopc.protocol.planned_starts import StartsPlanned
from twopc.rpc import control_pb2 as pb

E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Attach:
    """The first message of a subtask's stream: who it is, and how far it has heard."""

    job: str
    attempt: AttemptId
    subtask: SubtaskIndex
    pid: int
    host: str
    last_checkpoint_id: CheckpointId = CheckpointId(0)  # noqa: RUF009  a NewType call is a constant
    end_of_input: bool = False


def encode_from_subtask(message: ToCoordinator | Attach) -> pb.FromSubtask:
    match message:
        case Attach():
            return pb.FromSubtask(
                attach=pb.Attach(
                    job=message.job,
                    attempt=message.attempt,
                    subtask=message.subtask,
                    pid=message.pid,
                    host=message.host,
                    last_checkpoint_id=message.last_checkpoint_id,
                    end_of_input=message.end_of_input,
                )
            )
        case Ack():
            return pb.FromSubtask(
                ack=pb.Ack(
                    checkpoint_id=message.checkpoint_id,
                    snapshot_json=json.dumps(message.snapshot.to_json()).encode(),
                    pause_ms=message.pause_ms,
                    store_ms=message.store_ms,
                    pre_commit_ms=message.pre_commit_ms,
                    write_ms=message.write_ms,
                )
            )
        case Decline():
            return pb.FromSubtask(decline=pb.Decline(checkpoint_id=message.checkpoint_id, reason=message.reason))
        case Committed():
            return pb.FromSubtask(committed=pb.Committed(checkpoint_id=message.checkpoint_id))
        case EndOfInput():
            return pb.FromSubtask(end_of_input=pb.EndOfInput())
        case Failed():
            return pb.FromSubtask(
                failed=pb.Failed(
                    error_type=message.error_type, message=message.message, restartable=message.restartable
                )
            )
        case Progress():
            return pb.FromSubtask(progress=encode_progress(message))
        case _:
            assert_never(message)


def decode_from_subtask(wire: pb.FromSubtask) -> ToCoordinator | Attach:
    match wire.WhichOneof("body"):
        case "attach":
            attach = wire.attach
            return Attach(
                job=attach.job,
                attempt=AttemptId(attach.attempt),
                subtask=SubtaskIndex(attach.subtask),
                pid=attach.pid,
                host=attach.host,
                last_checkpoint_id=CheckpointId(attach.last_checkpoint_id),
                end_of_input=attach.end_of_input,
            )
        case "ack":
            ack = wire.ack
            snapshot = _decode_snapshot(ack.snapshot_json)
            durations = (ack.pause_ms, ack.store_ms, ack.pre_commit_ms, ack.write_ms)
            return Ack(CheckpointId(ack.checkpoint_id), snapshot, *durations)
        case "decline":
            return Decline(CheckpointId(wire.decline.checkpoint_id), wire.decline.reason)
        case "committed":
            return Committed(CheckpointId(wire.committed.checkpoint_id))
        case "end_of_input":
            return EndOfInput()
        case "failed":
            return Failed(wire.failed.error_type, wire.failed.message, wire.failed.restartable)
        case "progress":
            return decode_progress(wire.progress)
        case other:
            raise ProtocolViolation(f"a subtask sent a message without a known body ({other})")


def encode_to_subtask(message: ToSubtask) -> pb.ToSubtask:
    match message:
        case Trigger():
            return pb.ToSubtask(trigger=pb.Trigger(checkpoint_id=message.checkpoint_id, final=message.final))
        case Complete():
            return pb.ToSubtask(complete=pb.Complete(checkpoint_id=message.checkpoint_id))
        case Abort():
            return pb.ToSubtask(abort=pb.Abort(checkpoint_id=message.checkpoint_id, reason=message.reason))
        case Drain():
            return pb.ToSubtask(drain=pb.Drain())
        case Finish():
            return pb.ToSubtask(finish=pb.Finish())
        case FencedOff():
            return pb.ToSubtask(fenced_off=pb.FencedOff(reason=message.reason))
        case Welcome():
            return pb.ToSubtask(welcome=pb.Welcome())
        case _:
            assert_never(message)


def decode_to_subtask(wire: pb.ToSubtask) -> ToSubtask:
    match wire.WhichOneof("body"):
        case "trigger":
            return Trigger(CheckpointId(wire.trigger.checkpoint_id), wire.trigger.final)
        case "complete":
            return Complete(CheckpointId(wire.complete.checkpoint_id))
        case "abort":
            return Abort(CheckpointId(wire.abort.checkpoint_id), wire.abort.reason)
        case "drain":
            return Drain()
        case "finish":
            return Finish()
        case "fenced_off":
            return FencedOff(wire.fenced_off.reason)
        case "welcome":
            return Welcome()
        case other:
            raise ProtocolViolation(f"the coordinator sent a message without a known body ({other})")


def encode_event(event: JobEvent) -> pb.JobEvent:
    return pb.JobEvent(
        job=event.job,
        attempt=event.attempt,
        kind=event.kind,
        checkpoint_id=event.checkpoint_id,
        subtask=event.subtask,
        message=event.message,
        restartable=event.restartable,
        error_type=event.error_type,
        time_ms=event.time_ms,
        duration_ms=event.duration_ms,
        pid=event.pid,
        progress=None if event.progress is None else encode_progress(event.progress),
        pause_ms=event.pause_ms,
        checkpoint_kind=event.checkpoint_kind or "",
        label=event.label,
        request_id=event.request_id,
        reason=event.reason or "",
    )


def decode_event(wire: pb.JobEvent) -> JobEvent:
    return JobEvent(
        kind=wire.kind,
        job=wire.job,
        attempt=AttemptId(wire.attempt),
        time_ms=wire.time_ms,
        checkpoint_id=CheckpointId(wire.checkpoint_id),
        subtask=SubtaskIndex(wire.subtask),
        message=wire.message,
        restartable=wire.restartable,
        error_type=wire.error_type,
        duration_ms=wire.duration_ms,
        pid=wire.pid,
        progress=decode_progress(wire.progress) if wire.HasField("progress") else None,
        pause_ms=wire.pause_ms,
        checkpoint_kind=_member(CheckpointKind, wire.checkpoint_kind),
        label=wire.label,
        request_id=wire.request_id,
        reason=_member(FailureReason, wire.reason),
    )


def encode_settings(settings: CheckpointSettings) -> pb.CheckpointSettings:
    return pb.CheckpointSettings(**settings.to_json())


def decode_settings(wire: pb.CheckpointSettings) -> CheckpointSettings:
    return CheckpointSettings(
        interval_ms=wire.interval_ms,
        timeout_ms=wire.timeout_ms,
        min_pause_ms=wire.min_pause_ms,
        max_concurrent=wire.max_concurrent,
        tolerable_failures=wire.tolerable_failures,
        retained=wire.retained,
    )


def encode_metadata(metadata: CheckpointMetadata | None) -> bytes:
    """Nothing becomes no bytes."""
    return b"" if metadata is None else json.dumps(metadata.to_json()).encode()


def decode_metadata(data: bytes) -> CheckpointMetadata | None:
    if not data:
        return None
    try:
        return CheckpointMetadata.from_json(json.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ProtocolViolation("the coordinator sent checkpoint metadata that can't be read") from error


def encode_planned(planned: StartsPlanned | None) -> bytes:
    """Nothing becomes no bytes."""
    return b"" if planned is None else json.dumps(planned.to_json()).encode()


def decode_planned(data: bytes) -> StartsPlanned | None:
    if not data:
        return None
    try:
        return StartsPlanned.from_json(json.loads(data))
    except NOT_OF_THIS_SHAPE as error:
        raise ProtocolViolation("the other side sent planned starts that can't be read") from error


def _member(kind: type[E], name: str) -> E | None:
    """The member of a closed set with this name; no name is none."""
    try:
        return kind(name) if name else None
    except ValueError as error:
        raise ProtocolViolation(f"the coordinator sent {name!r}, which is no {kind.__name__}") from error


def _decode_snapshot(data: bytes) -> SubtaskSnapshot:
    try:
        return SubtaskSnapshot.from_json(json.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ProtocolViolation("a subtask acknowledged with a snapshot that can't be read") from error


def encode_progress(progress: Progress) -> pb.Progress:
    return pb.Progress(
        records_in=progress.records_in,
        records_out=progress.records_out,
        lag=progress.lag,
        open_transaction=progress.open_transaction or "",
        pending_transactions=progress.pending_transactions,
    )


def decode_progress(wire: pb.Progress) -> Progress:
    return Progress(
        records_in=wire.records_in,
        records_out=wire.records_out,
        lag=wire.lag if wire.HasField("lag") else None,
        open_transaction=wire.open_transaction or None,
        pending_transactions=tuple(wire.pending_transactions),
    )
