"""What a subtask says, as it may go out: no message larger than the wire takes, no text that is not others' business.

An acknowledgement that is too large would break every stream on which it is repeated: it becomes a decline.
"""

from __future__ import annotations

from dataclasses import replace

from twopc.protocol.messages import Ack, Decline, Failed, ToCoordinator
from twopc.rpc.channel import MESSAGE_BYTES_MAX
from twopc.rpc.codec import encode_from_subtask
from twopc.rpc.wording import outward


def fitting(message: ToCoordinator) -> ToCoordinator:
    """Return the message, or what has to be said instead."""
    match message:
        case Ack():
            size = encode_from_subtask(message).ByteSize()
            if size <= MESSAGE_BYTES_MAX:
                return message
            return Decline(
                message.checkpoint_id,
                f"what describes the snapshot takes {size:,} bytes, and a message holds {MESSAGE_BYTES_MAX:,}: "
                "raise the parallelism, so that a subtask has fewer partitions",
            )
        case Decline():
            return replace(message, reason=outward(message.reason))
        case Failed():
            return replace(message, message=outward(message.message))
        case _:
            return message
