"""Messages between subtask and coordinator to their wire form and back; total both ways.

What can't be decoded raises ProtocolViolation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from twopc.errors import ProtocolViolation
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.protocol.messages import (
    ToCoordinator,
    ToSubtask,
)
from twopc.rpc import control_pb2 as pb
from twopc.rpc.fields import decode, encode, field_of


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
    heartbeat_timeout_ms: int = 0


FROM_SUBTASK = {field_of(kind): kind for kind in (Attach, *get_args(ToCoordinator))}
TO_SUBTASK = {field_of(kind): kind for kind in get_args(ToSubtask)}
"""The messages by the name of their field on the wire."""


def encode_from_subtask(message: ToCoordinator | Attach) -> pb.FromSubtask:
    return pb.FromSubtask(**{field_of(type(message)): encode(message, getattr(pb, type(message).__name__))})


def decode_from_subtask(wire: pb.FromSubtask) -> ToCoordinator | Attach:
    name = wire.WhichOneof("body")
    if name not in FROM_SUBTASK:
        raise ProtocolViolation(f"a subtask sent a message without a known body ({name})")
    message: ToCoordinator | Attach = decode(FROM_SUBTASK[name], getattr(wire, name))
    return message


def encode_to_subtask(message: ToSubtask) -> pb.ToSubtask:
    return pb.ToSubtask(**{field_of(type(message)): encode(message, getattr(pb, type(message).__name__))})


def decode_to_subtask(wire: pb.ToSubtask) -> ToSubtask:
    name = wire.WhichOneof("body")
    if name not in TO_SUBTASK:
        raise ProtocolViolation(f"the coordinator sent a message without a known body ({name})")
    message: ToSubtask = decode(TO_SUBTASK[name], getattr(wire, name))
    return message
