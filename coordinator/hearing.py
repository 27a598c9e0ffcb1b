"""What the subtasks of one attempt say, entered where it belongs. Pure.

Invariants: a message counts only from a member's stream, an acknowledgement only for a checkpoint that is in flight,
and only with a snapshot of the subtask that sends it; a commit counts only of a checkpoint that this attempt completed.
"""

from __future__ import annotations

from typing import assert_never

from coordinator.aborts import Aborts
from coordinator.catching_up import CatchingUp
from coordinator.confirmations import Confirmations
from coordinator.events import Attached, Said
from coordinator.in_flight import InFlight
from coordinator.membership import Membership
from coordinator.outbox import Outbox
from twopc.protocol.checkpoints import FailureReason
from twopc.protocol.ids import AttemptId
from twopc.protocol.job_events import JobEventKind
from twopc.protocol.ledger_state import LedgerState
from twopc.protocol.messages import Ack, Committed, Decline, EndOfInput, Failed, Progress


class Hearing:
    """Takes in messages; decides nothing that has to be stored."""

    def __init__(
        self,
        attempt: AttemptId,
        membership: Membership,
        in_flight: InFlight,
        confirmations: Confirmations,
        catching_up: CatchingUp,
        aborts: Aborts,
    ) -> None:
        self.in_flight = in_flight
        self._attempt = attempt
        self._membership = membership
        self._confirmations = confirmations
        self._catching_up = catching_up
        self._aborts = aborts

    def take(self, event: Said, state: LedgerState, out: Outbox) -> None:
        """Enter what is said; a stream that is no member's counts for nothing."""
        member = self._membership.find(event.session)
        if member is None:
            return
        message = event.message
        match message:
            case Ack():
                self._acknowledged(member, message, state, out)
            case Decline():
                self._declined(member, message, state, out)
            case Committed():
                completed = state.find(message.checkpoint_id)
                if completed is not None and completed.record.attempt == self._attempt:
                    self._confirmations.say(member.subtask, completed.checkpoint_id, out.now)
            case EndOfInput():
                if member.subtask not in self._membership.at_end:
                    self._membership.at_end.add(member.subtask)
                    out.publish(JobEventKind.END_OF_INPUT, subtask=member.subtask)
            case Failed():
                self._aborts.fail(message.error_type, message.message, message.restartable, out, member.subtask)
            case Progress():
                self._membership.progress[member.subtask] = message
                out.publish(JobEventKind.PROGRESS, subtask=member.subtask, progress=message)
            case _:
                assert_never(message)

    def _acknowledged(self, member: Attached, ack: Ack, state: LedgerState, out: Outbox) -> None:
        pending = self.in_flight.find(ack.checkpoint_id)
        if pending is None:
            self._catching_up.answer_late(member, ack.checkpoint_id, state, out)
        elif ack.snapshot.subtask != member.subtask:
            message = f"subtask {member.subtask} acknowledged with a snapshot of subtask {ack.snapshot.subtask}"
            self._aborts.abort(pending, FailureReason.CHECKPOINT_DECLINED, message, out)
        elif pending.acknowledge(ack, out.now):
            out.publish(
                JobEventKind.ACKNOWLEDGED,
                checkpoint_id=ack.checkpoint_id,
                subtask=member.subtask,
                duration_ms=ack.pause_ms + ack.store_ms,
                pause_ms=ack.pause_ms,
            )

    def _declined(self, member: Attached, decline: Decline, state: LedgerState, out: Outbox) -> None:
        pending = self.in_flight.find(decline.checkpoint_id)
        if pending is None:
            self._catching_up.answer_late(member, decline.checkpoint_id, state, out)
            return
        message = f"subtask {member.subtask} declined: {decline.reason}"
        self._aborts.decline(pending, member.subtask, decline.reason, message, out)
