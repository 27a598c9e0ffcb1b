"""Which crash points the coordinator comes to as it stores and sends."""

from __future__ import annotations

from twopc.faults.points import CrashPoint, reached
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ledger_facts import CheckpointCompleted, CheckpointReserved, Fact
from twopc.protocol.messages import Complete, ToSubtask, Trigger


def before_storing(fact: Fact) -> None:
    match fact:
        case CheckpointMetadata():
            reached(CrashPoint.COORDINATOR_AFTER_ACKS, checkpoint=fact.checkpoint_id)
        case CheckpointReserved():
            reached(CrashPoint.COORDINATOR_BEFORE_RESERVE, checkpoint=fact.checkpoint_id)
        case _:
            pass


def after_storing(fact: Fact) -> None:
    match fact:
        case CheckpointReserved():
            reached(CrashPoint.COORDINATOR_AFTER_RESERVE, checkpoint=fact.checkpoint_id)
        case CheckpointMetadata():
            reached(CrashPoint.COORDINATOR_AFTER_METADATA, checkpoint=fact.checkpoint_id)
        case CheckpointCompleted():
            reached(CrashPoint.COORDINATOR_AFTER_COMPLETION, checkpoint=fact.checkpoint_id)
        case _:
            pass


def after_sending(message: ToSubtask, *, is_last: bool) -> None:
    """A message is on its way, the last of a decision or not; another may follow to another subtask."""
    match message:
        case Trigger():
            point = CrashPoint.COORDINATOR_AFTER_TRIGGERS if is_last else CrashPoint.COORDINATOR_IN_TRIGGERS
            reached(point, checkpoint=message.checkpoint_id)
        case Complete():
            point = CrashPoint.COORDINATOR_AFTER_NOTIFY if is_last else CrashPoint.COORDINATOR_IN_NOTIFY
            reached(point, checkpoint=message.checkpoint_id)
        case _:
            pass
