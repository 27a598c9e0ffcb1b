"""The ends of a job's stages, one after the other. Pure.

A source of a later stage reads what the job itself writes. What it has to read is there when all subtasks have read the
stage before, and have committed what they made of it: then a checkpoint that was triggered after the last of them said
so is committed everywhere. Only then are they told to read the next stage to the end that it has now.

How far event time has come is written behind the records, of which all subtasks tell with a checkpoint, and are told
for the whole job with a later one. So the checkpoint is one of which no other times came than its trigger brought.

Invariant: no stage is bounded before all output of the one before is committed. Who forgot how far this was, a new
coordinator, learns the ends from the subtasks as they attach, and takes one more checkpoint.
"""

from __future__ import annotations

from coordinator.checkpoint import InFlight
from coordinator.membership import Membership
from twopc.protocol.ids import NO_CHECKPOINT, CheckpointId


class StageEnds:
    """The stage that one attempt has reached. `bounded` is what the subtasks were told to end last; 0 for none."""

    def __init__(self, membership: Membership, in_flight: InFlight) -> None:
        self.bounded = 0
        self._membership = membership
        self._in_flight = in_flight
        self._through = NO_CHECKPOINT
        self._unsettled = NO_CHECKPOINT

    def triggered(self, checkpoint_id: CheckpointId) -> None:
        """A checkpoint was triggered: it holds all of the stages that had ended by now."""
        if self._next is not None and self._through == NO_CHECKPOINT:
            self._through = checkpoint_id

    def completed(self, checkpoint_id: CheckpointId, times_settled: bool) -> None:
        """A checkpoint completed; `times_settled`: its subtasks told of no times that its trigger did not bring."""
        if checkpoint_id >= self._through > NO_CHECKPOINT and not times_settled:
            self._through, self._unsettled = NO_CHECKPOINT, checkpoint_id

    def needs_checkpoint(self, completed: CheckpointId, committed: CheckpointId) -> bool:
        """Whether a stage waits for a checkpoint that nobody has triggered, or none that was has come of.

        `completed` is the newest that has completed, `committed` the newest that is committed everywhere: before that,
        no trigger brings the times of the one that left some to be told.
        """
        if self._next is None or completed >= self._through > NO_CHECKPOINT or committed < self._unsettled:
            return False
        return self._through == NO_CHECKPOINT or not self._in_flight.after(CheckpointId(self._through - 1))

    def next_to_end(self, committed: CheckpointId) -> int | None:
        """Return the stage that may end now, given what is committed everywhere; None for none."""
        if (stage := self._next) is None or not NO_CHECKPOINT < self._through <= committed:
            return None
        self.bounded, self._through = stage, NO_CHECKPOINT
        return stage

    @property
    def _next(self) -> int | None:
        stage = self._membership.stages_at_end
        return stage if stage > self.bounded else None
