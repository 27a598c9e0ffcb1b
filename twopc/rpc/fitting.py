"""What a subtask says, as it may go out: no message larger than the wire takes, no text that is not others' business.

An acknowledgement that is too large would break every stream on which it is repeated: it becomes a decline.
"""

from __future__ import annotations

from dataclasses import replace

from twopc.protocol.messages import Ack, Decline, Failed, ToCoordinator
from twopc.rpc import control_pb2 as pb
from twopc.rpc.channel import MESSAGE_BYTES_MAX
from twopc.rpc.codec import encode_from_subtask
from twopc.rpc.wording import outward


def fitting(message: ToCoordinator) -> tuple[ToCoordinator, pb.FromSubtask]:
    """Return the message, or what has to be said instead, and that as it goes out."""
    match message:
        case Ack():
            wire = encode_from_subtask(message)
            size = wire.ByteSize()
            if size <= MESSAGE_BYTES_MAX:
                return message, wire
            said: ToCoordinator = Decline(
                message.checkpoint_id,
                f"what describes the snapshot takes {size:,} bytes, and a message holds {MESSAGE_BYTES_MAX:,}: "
                "raise the parallelism, so that a subtask has fewer partitions",
            )
        case Decline():
            said = replace(message, reason=outward(message.reason))
        case Failed():
            said = replace(message, message=outward(message.message))
        case _:
            said = message
    return said, encode_from_subtask(said)
