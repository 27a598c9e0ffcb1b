"""The memory of a subtask's link: what it must say again on a new stream, and whether it was let in at all. Pure.

Invariants: an acknowledgement is repeated until the coordinator has said what became of its checkpoint, and a trigger
says nothing of those before it, which may be in flight still; of several commit reports only the greatest matters,
because it covers those before; progress is never repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from twopc.errors import Fenced
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId
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
    ToCoordinator,
    ToSubtask,
    Trigger,
    Welcome,
)


@dataclass(slots=True)
class LinkMemory:
    """Follows one subtask's conversation. `last_checkpoint_id` is the greatest that it was told to take.

    `dismissed` says why the subtask must end, once it was told to.
    """

    last_checkpoint_id: CheckpointId = NO_CHECKPOINT
    end_of_input: bool = False
    stage_ended: EndOfInput | None = None
    failed: Failed | None = None
    welcomed: bool = False
    dismissed: str | None = None
    _committed: Committed | None = None
    _unanswered: dict[CheckpointId, Ack | Decline] = field(default_factory=dict)

    def note_sent(self, message: ToCoordinator) -> None:
        match message:
            case Ack() | Decline():
                self._unanswered[message.checkpoint_id] = message
            case Committed() if self._committed is None or message.checkpoint_id > self._committed.checkpoint_id:
                self._committed = message
            case EndOfInput() if message.following:
                self.stage_ended = message
            case EndOfInput():
                self.end_of_input, self.stage_ended = True, None
            case Failed():
                self.failed = message
            case _:
                pass

    def note_received(self, message: ToSubtask) -> None:
        match message:
            case Trigger():
                self.last_checkpoint_id = max(self.last_checkpoint_id, message.checkpoint_id)
            case Complete():
                self._answered(message.checkpoint_id)
            case Abort():
                self._unanswered.pop(message.checkpoint_id, None)
            case Welcome():
                self.welcomed = True
            case FencedOff():
                self.dismissed = message.reason
            case Finish():
                self.dismissed = "the attempt is over"
            case Drain():
                pass
            case _:
                assert_never(message)

    @property
    def decided(self) -> bool:
        """Whether the coordinator has said yes or no to this subtask."""
        return self.welcomed or self.dismissed is not None

    def may_open(self) -> bool:
        """Whether the coordinator has accepted this subtask, so far as is known; raise Fenced if it need not wait."""
        if self.dismissed is not None:
            raise Fenced(f"this subtask was turned away before it began: {self.dismissed}")
        return self.welcomed

    def repeat(self) -> list[ToCoordinator]:
        """The messages to send after Attach, which itself tells of the end of all input."""
        last_words = (self._committed, self.stage_ended, self.failed)
        return [*self._unanswered.values(), *(message for message in last_words if message is not None)]

    def _answered(self, up_to: CheckpointId) -> None:
        self._unanswered = {each: message for each, message in self._unanswered.items() if each > up_to}
