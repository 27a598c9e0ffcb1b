"""What a subtask says, before anybody acts on it, keeps it or passes it on.

Invariants: no text goes further than `twopc.rpc.wording` lets it; a state handle names its own place in the job's
checkpoint folder, and nothing else; a duration is a number, which JSON can hold.
"""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

from twopc.errors import ProtocolViolation
from twopc.protocol.layout import subtask_folder
from twopc.protocol.messages import Ack, Decline, Failed, Progress, ToCoordinator
from twopc.rpc.wording import outward

PENDING_MAX = 100
"""Names of pre-committed transactions that a report of progress may have; a subtask has a handful."""


def admitted(message: ToCoordinator) -> ToCoordinator:
    """Return the message as it may be taken; raise ProtocolViolation if it may not."""
    match message:
        case Ack():
            expected = subtask_folder(message.checkpoint_id, message.snapshot.subtask)
            if message.snapshot.state.path != expected:
                raise ProtocolViolation(f"an acknowledgement names state elsewhere than in {expected}")
            if not all(isfinite(each) and each >= 0 for each in message.durations):
                raise ProtocolViolation("an acknowledgement tells of a duration that is none")
            return message
        case Decline():
            return replace(message, reason=outward(message.reason))
        case Failed():
            return replace(message, error_type=outward(message.error_type), message=outward(message.message))
        case Progress():
            pending = tuple(outward(name) for name in message.pending_transactions[:PENDING_MAX])
            opened = None if message.open_transaction is None else outward(message.open_transaction)
            return replace(message, open_transaction=opened, pending_transactions=pending)
        case _:
            return message
