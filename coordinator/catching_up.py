"""What a subtask is told again, because it may have missed it. Pure.

A stream may break at any message, and the coordinator may have been restarted: so a subtask says on attaching what it
has heard, and repeats what it was not answered; here it gets what it lacks, and each late word the answer it waits for.
"""

from __future__ import annotations

from coordinator.confirmations import Confirmations
from coordinator.events import Attached
from coordinator.in_flight import InFlight
from coordinator.outbox import Outbox
from twopc.protocol.ids import CheckpointId
from twopc.protocol.ledger_state import LedgerState
from twopc.protocol.messages import Abort, Complete, Drain


class CatchingUp:
    """Compares what a subtask has heard with what there was to hear."""

    def __init__(self, in_flight: InFlight, confirmations: Confirmations) -> None:
        self._in_flight = in_flight
        self._confirmations = confirmations

    def has_forgotten(self, event: Attached, state: LedgerState) -> bool:
        """Whether this is not the process that acknowledged before: it lacks what that one has pre-committed."""
        acknowledged = max(state.newest_of_attempt, self._in_flight.acknowledged_by(event.subtask))
        return event.last_checkpoint_id < acknowledged

    def repeat_missed(self, event: Attached, state: LedgerState, out: Outbox) -> None:
        newest, last = state.newest_of_attempt, event.last_checkpoint_id
        if newest > self._confirmations.said_by(event.subtask):
            out.send(event.session, Complete(newest))
        if last > newest and self._in_flight.find(last) is None:
            out.send(event.session, Abort(last, "aborted while the subtask was not attached"))
        if state.stop is not None and state.stop.drain:
            out.send(event.session, Drain())
        for pending in self._in_flight.after(last):
            out.send(event.session, pending.trigger)

    def answer_late(self, member: Attached, checkpoint_id: CheckpointId, state: LedgerState, out: Outbox) -> None:
        """Say again what became of a checkpoint, so that the subtask stops repeating itself."""
        newest = state.newest_of_attempt
        if checkpoint_id <= newest:
            out.send(member.session, Complete(newest))
        else:
            out.send(member.session, Abort(checkpoint_id, "it is no longer pending"))
