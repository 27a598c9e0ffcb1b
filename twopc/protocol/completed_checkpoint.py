"""A completed checkpoint as the ledger knows it: its record, and what became of its transactions. Pure.

Invariant: `outstanding` is what the record names, less what is confirmed, less what is lost. It is worked out once for
each value, not each time that somebody asks: with thousands of subtasks that is what a confirmation costs. What is
outstanding *globally* no subtask confirms: the driver does, when a global committer has committed it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from twopc.protocol.ids import CheckpointId, SubtaskIndex
from twopc.protocol.ledger_facts import CheckpointCompleted, CommittablesConfirmed, LossSettled


@dataclass(frozen=True, slots=True)
class CompletedCheckpoint:
    """A completion record, which of its committables are confirmed, and what was decided about those that are lost.

    `outstanding` are the names of the committables whose commit nobody has confirmed yet, and about which nothing else
    is decided; `globally_outstanding` those among them that a global committer has to commit. Of the times, Unix
    milliseconds, `completed_ms` is known from the first confirmation of its own on, and `confirmed_ms` is of the last
    so far; 0 before, and where they never will be.
    """

    record: CheckpointCompleted
    confirmed: frozenset[str] = frozenset()
    losses: tuple[LossSettled, ...] = ()
    completed_ms: int = 0
    confirmed_ms: int = 0
    outstanding: frozenset[str] = field(init=False, repr=False, compare=False)
    globally_outstanding: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = frozenset(name for names in self.record.committables for name in names)
        outstanding = names - self.confirmed - self.lost
        object.__setattr__(self, "outstanding", outstanding)
        object.__setattr__(self, "globally_outstanding", outstanding.intersection(self.record.global_committables))

    @property
    def checkpoint_id(self) -> CheckpointId:
        return self.record.checkpoint_id

    @property
    def lost(self) -> frozenset[str]:
        """Names of the committables that are lost: written again by healed subtasks, or accepted by a person."""
        return frozenset(name for loss in self.losses for name in loss.names)

    @property
    def bases(self) -> dict[SubtaskIndex, CheckpointId]:
        """The subtasks that are restored from an earlier checkpoint whenever this one is restored.

        Not those that a later decision accepts the loss of: their input may have gone before it was read again.
        """
        bases: dict[SubtaskIndex, CheckpointId] = {}
        for loss in self.losses:
            for subtask in [base for base in bases if not self.record.names_of(base).isdisjoint(loss.names)]:
                del bases[subtask]
            bases |= dict(loss.bases)
        return bases

    def may_settle(self, loss: LossSettled) -> bool:
        """Whether this is about what nothing is decided about, or accepts the loss of all that some were to rewrite."""
        names = frozenset(loss.names)
        if names <= self.outstanding:
            return True
        rewriting = [self.record.names_of(subtask) & self.lost for subtask in self.bases]
        concerned = frozenset(name for each in rewriting if each & names for name in each)
        return not loss.bases and names == concerned

    def outstanding_of(self, subtask: SubtaskIndex) -> frozenset[str]:
        """The committables that this subtask has still to commit."""
        return (self.outstanding & self.record.names_of(subtask)) - self.globally_outstanding

    def confirm(self, names: AbstractSet[str], fact: CommittablesConfirmed) -> CompletedCheckpoint:
        """Enter what this fact says, its names as a set."""
        news = self.outstanding & names
        if not news:
            return self
        known_ms = fact.completed_ms if fact.checkpoint_id == self.checkpoint_id else self.completed_ms
        return CompletedCheckpoint(self.record, self.confirmed | news, self.losses, known_ms, fact.confirmed_ms)

    def settle(self, loss: LossSettled) -> CompletedCheckpoint:
        return replace(self, losses=(*self.losses, loss))
