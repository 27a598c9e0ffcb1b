"""The faults of one fault drill: what is done to whom, and at which step of the protocol; drawn from a seed. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from twopc.faults.armed_faults import ArmedFault, ProcessAction
from twopc.faults.crash_table import CrashPoint

FIRST_CHECKPOINT = 2
CHECKPOINTS_APART = 2
MOST_SECONDS = 3.0


class Kind(Enum):
    """The kinds of faults; the value is how each is told."""

    KILL_WORKER = "a worker is killed"
    KILL_DRIVER = "the driver is killed"
    KILL_COORDINATOR = "the coordinator is killed"
    KILL_BROKER = "the broker is killed"
    PAUSE_BROKER = "the broker is paused"
    SLOW_BROKER = "the broker is slow"
    CUT_CONTROL = "the control stream is cut"
    FILL_DISK = "the coordinator's disk is full"
    FILL_SNAPSHOT_DISK = "the disk is full where a subtask stores its snapshot"
    EXPIRE_TRANSACTION = "all is down until the broker's own clock has expired a pre-committed transaction"
    ABORT_TRANSACTION = "the drill aborts a pre-committed transaction in the broker's place"
    CORRUPT_CHECKPOINT = "a file of the newest checkpoint is damaged"

    @property
    def needs_own_broker(self) -> bool:
        """Whether it may be done only to a broker that the drill has started itself."""
        return self in _TO_THE_BROKER

    @property
    def lasts(self) -> bool:
        """Whether it goes on for a while, and is undone then."""
        return self in _LASTING


_TO_THE_BROKER = (Kind.KILL_BROKER, Kind.PAUSE_BROKER, Kind.SLOW_BROKER, Kind.EXPIRE_TRANSACTION)
#: Of these a drill has the first where it can set the broker's clock, and the second where it can't.
_OF_A_TIMEOUT = (Kind.EXPIRE_TRANSACTION, Kind.ABORT_TRANSACTION)
_LASTING = (Kind.PAUSE_BROKER, Kind.SLOW_BROKER, Kind.CUT_CONTROL, Kind.FILL_DISK)

#: Steps at which a subtask can stand while something is done to somebody else.
_STEPS = (
    CrashPoint.BEFORE_TRIGGER,
    CrashPoint.BEFORE_PRE_COMMIT,
    CrashPoint.IN_PRE_COMMIT_AFTER_FLUSH,
    CrashPoint.AFTER_PRE_COMMIT,
    CrashPoint.BEFORE_SNAPSHOT,
    CrashPoint.AFTER_STORE,
    CrashPoint.AFTER_ACK,
    CrashPoint.BEFORE_COMMIT,
    CrashPoint.AFTER_COMMIT,
    CrashPoint.AFTER_COMMITTED_SENT,
)
#: Only a transaction has them.
_OF_TRANSACTIONS = (CrashPoint.IN_PRE_COMMIT_AFTER_FLUSH,)
#: Only there is a completed checkpoint with a transaction that nobody has committed.
_PENDING = (CrashPoint.BEFORE_COMMIT,)
_STEPS_OF: Mapping[Kind, tuple[CrashPoint, ...]] = {
    Kind.EXPIRE_TRANSACTION: _PENDING,
    Kind.ABORT_TRANSACTION: _PENDING,
    Kind.CORRUPT_CHECKPOINT: _PENDING,
    Kind.FILL_SNAPSHOT_DISK: (CrashPoint.IN_STORE,),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, at the first subtask that comes to the step at this checkpoint or a later one."""

    number: int
    kind: Kind
    step: CrashPoint
    checkpoint: int
    seconds: float

    @property
    def arm(self) -> ArmedFault:
        """The fault that processes are armed with: a worker ends itself; for all else it waits until it is done."""
        act = ProcessAction.KILL if self.kind is Kind.KILL_WORKER else ProcessAction.HOLD
        return ArmedFault(self.step, act, checkpoint=self.checkpoint, name=f"-fault-{self.number}")

    def __str__(self) -> str:
        lasting = f" for {self.seconds} s" if self.kind.lasts else ""
        return (
            f"{self.kind.value}{lasting} at {self.step.code} ({self.step.value.happened}), from checkpoint "
            f"{self.checkpoint} on"
        )


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The faults of one seed, in the order of their checkpoints. The same seed and choices make the same plan."""

    seed: int
    faults: tuple[Fault, ...]

    @property
    def last_checkpoint(self) -> int:
        return max((fault.checkpoint for fault in self.faults), default=0)


def choices(*, own_broker: bool, transactional: bool = True) -> tuple[Kind, ...]:
    """Return the kinds that may be drawn: a broker that is not the drill's own is left alone.

    A job whose sink is not `transactional` has no transaction that could be aborted.
    """
    left_out = {Kind.ABORT_TRANSACTION} if own_broker else set(_TO_THE_BROKER)
    return tuple(kind for kind in Kind if kind not in left_out and (transactional or kind not in _OF_A_TIMEOUT))


def draw(seed: int, count: int, kinds: Sequence[Kind], *, transactional: bool = True) -> FaultPlan:
    """Return the plan of a seed: no kind comes twice before each has come once."""
    rng = random.Random(f"twopc-drill-{seed}")
    drawn: list[Kind] = []
    while len(drawn) < count:
        drawn += rng.sample(list(kinds), len(kinds))
    steps = tuple(step for step in _STEPS if transactional or step not in _OF_TRANSACTIONS)
    return FaultPlan(seed, tuple(_fault(rng, number, kind, steps) for number, kind in enumerate(drawn[:count])))


def _fault(rng: random.Random, number: int, kind: Kind, steps: Sequence[CrashPoint]) -> Fault:
    return Fault(
        number=number,
        kind=kind,
        step=rng.choice(_STEPS_OF.get(kind, steps)),
        checkpoint=FIRST_CHECKPOINT + CHECKPOINTS_APART * number,
        seconds=round(rng.uniform(0.5, MOST_SECONDS), 1),
    )
