"""Keeps a subtask's messages within the wire's limit, and redacts their texts.

An acknowledgement that is too large would break every stream on which it is repeated: it becomes a decline.
"""

from __future__ import annotations

from dataclasses import replace

from twopc.protocol.messages import Ack, Decline, Failed, ToCoordinator
from twopc.rpc import control_pb2 as pb
from twopc.rpc.channel import MESSAGE_BYTES_MAX
from twopc.rpc.codec import encode_from_subtask
from twopc.rpc.redaction import redact


def sendable(message: ToCoordinator) -> tuple[ToCoordinator, pb.FromSubtask]:
    """Return the message, or the one that replaces it, and its wire form."""
    match message:
        case Ack():
            wire = encode_from_subtask(message)
            size = wire.ByteSize()
            if size <= MESSAGE_BYTES_MAX:
                return message, wire
            replaced: ToCoordinator = Decline(
                message.checkpoint_id,
                f"what describes the snapshot takes {size:,} bytes, and a message holds {MESSAGE_BYTES_MAX:,}: "
                "raise the parallelism, so that a subtask has fewer partitions",
            )
        case Decline():
            replaced = replace(message, reason=redact(message.reason))
        case Failed():
            replaced = replace(message, message=redact(message.message))
        case _:
            replaced = message
    return replaced, encode_from_subtask(replaced)
