"""Messages between subtask and coordinator to their wire form and back; total both ways.

What can't be decoded raises ProtocolViolation.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import assert_never

from twopc.errors import ProtocolViolation
from twopc.protocol.canonical import canonical
from twopc.protocol.codec import from_json, to_json
from twopc.protocol.facts import SubtaskSnapshot
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
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
from twopc.rpc import control_pb2 as pb
from twopc.rpc.job_codec import decode_progress, encode_progress


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
                    snapshot_json=canonical(to_json(message.snapshot)),
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


def _decode_snapshot(data: bytes) -> SubtaskSnapshot:
    try:
        return from_json(SubtaskSnapshot, json.loads(data))
    except (ValueError, RecursionError) as error:
        raise ProtocolViolation(f"a subtask acknowledged with a snapshot that can't be read: {error}") from error
