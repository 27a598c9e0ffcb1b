"""The driver's actions on itself: it comes to places where it may be stopped, and names what is damaged."""

from __future__ import annotations

from dataclasses import dataclass

from twopc.driver.edge import Edge
from twopc.driver.effects import Action
from twopc.errors import CheckpointCorrupted, TwoPhaseCommitError
from twopc.faults.crash_table import CrashPoint
from twopc.protocol.ids import CheckpointId


@dataclass(frozen=True, slots=True)
class Reach(Action[None]):
    """A named place where this process may be stopped."""

    point: CrashPoint
    checkpoint_id: CheckpointId

    def carry_out(self, edge: Edge) -> None:
        edge.reached(self.point, self.checkpoint_id)


@dataclass(frozen=True, slots=True)
class NameDamage(Action[TwoPhaseCommitError]):
    """Look for all that is damaged, and name it in one error."""

    error: CheckpointCorrupted
    checkpoint_id: CheckpointId | None

    def carry_out(self, edge: Edge) -> TwoPhaseCommitError:
        return edge.all_damage(self.error, self.checkpoint_id)
