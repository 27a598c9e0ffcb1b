"""The extension point for exactly-once output: a sink that pre-commits, and commits when a checkpoint has completed.

Names and contract follow Flink's `TwoPhaseCommitSinkFunction`. `twopc.kafka` implements it; `examples/` has a second
implementation that renames files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from twopc.context import JobContext, SubtaskContext
from twopc.protocol.facts import Committable, SplitPosition
from twopc.protocol.ids import AttemptId, CheckpointId
from twopc.protocol.messages import Complete
from twopc.record import Batch

Txn = TypeVar("Txn")


@dataclass(frozen=True, slots=True)
class PreCommit:
    """For which checkpoint a transaction is pre-committed, and up to where the input went into it.

    `group` is the consumer group of the source, to which the sink commits the positions with its output: a Kafka sink
    does so inside the transaction, as a witness of the outcome. None where it is not to (`TwoPhaseCommitSink.cluster`).
    """

    checkpoint_id: CheckpointId
    positions: tuple[SplitPosition, ...]
    group: str | None


class Outcome(Enum):
    """What became of a committable when it was settled."""

    COMMITTED = "committed now"
    ALREADY_COMMITTED = "already committed"
    LOST = "lost"
    HELD = "held back"


@dataclass(frozen=True, slots=True)
class Settled:
    """The outcome of one committable, with the evidence in a sentence that a person can read.

    `certain`, of one that is lost: nothing of it is or will ever be visible, so that writing it again is exact.
    """

    committable: Committable
    outcome: Outcome
    evidence: str
    certain: bool = False


class TwoPhaseCommitSink(ABC, Generic[Txn]):
    """Output that becomes visible only when the checkpoint that it belongs to has completed.

    The object in the job is a description: it is copied to every subtask, and nothing is opened before `open`. Three
    callers use it, each on a copy of its own:

    - the driver, before an attempt reads its first record: `claim`, `recover`, then `abort_lingering`;
    - each subtask's data loop: `open`, then in turn `begin`, `write`..., `pre_commit`, and at the end `abort`, `close`;
    - each subtask's commit thread, beside the data loop: `commit`, `release`.

    What the framework guarantees: `pre_commit` before the snapshot is acknowledged; `commit` only after the completion
    record exists, for every pre-committed transaction, oldest first, and again after a crash (so it must be
    idempotent); `claim`, then `recover` of everything, then `abort_lingering`, all before any `open` of the attempt.
    """

    def cluster(self, context: JobContext) -> str | None:
        """On the driver: the Kafka cluster, by its id, to whose groups a commit brings the positions of a PreCommit.

        Where that is not the cluster of the source's group, and where it is None, the framework commits the positions
        of completed checkpoints to the group beside the sink. Never both: the two could overtake each other, and the
        group's offsets would go back.
        """
        return None

    def open(self, context: SubtaskContext) -> None:
        """Prepare to write for this subtask. Nothing of an earlier attempt is pending any more."""

    @abstractmethod
    def begin(self) -> Txn:
        """Open a transaction for the records up to the next checkpoint."""

    @abstractmethod
    def write(self, txn: Txn, batch: Batch) -> int:
        """Write the batch into the open transaction; return how many records were written."""

    @abstractmethod
    def pre_commit(self, txn: Txn, request: PreCommit) -> Committable | None:
        """Make the transaction durable and able to be committed by another process, whatever happens to this one.

        Return None if it holds nothing: then it stays open and `begin` is not called. After a committable has been
        returned, `commit` must succeed. Raise CheckpointDeclined if this can't be done for this checkpoint, any other
        error if the transaction is spoilt.
        """

    @abstractmethod
    def commit(self, committable: Committable, proof: Complete) -> None:
        """Commit a transaction that this subtask pre-committed. Idempotent. Raise TransactionLost if it is gone."""

    def release(self, completed: CheckpointId) -> None:
        """Everything up to this checkpoint is committed and confirmed: resources held for it may be used again."""

    @abstractmethod
    def abort(self, txn: Txn) -> None:
        """Abort the open transaction; never a pre-committed one."""

    def last_attempt(self, context: JobContext) -> AttemptId:
        """On the driver, once a run and before its first attempt: the greatest attempt that left a trace outside.

        The next attempt gets a greater number, also where the checkpoints of those before it are gone (a deleted or
        another checkpoint folder): otherwise it would take what they left for its own. 0 where there is none;
        `context.attempt` is 0.
        """
        return AttemptId(0)

    def open_attempt(self, context: JobContext) -> AttemptId:
        """On the driver, with `last_attempt`: the greatest attempt that has output open outside; 0 where none has.

        It may be running at this moment, with other checkpoints.
        """
        return AttemptId(0)

    def claim(self, context: JobContext) -> None:
        """On the driver, before `recover`: make this attempt known where the output goes.

        Raise Fenced if another run, which may have a ledger of its own, has this attempt's number, or a later one.
        """
        return

    def successor(self, context: JobContext) -> AttemptId:
        """On the driver: the greatest attempt after `context.attempt` that has claimed the output; 0 for none."""
        return AttemptId(0)

    @abstractmethod
    def recover(
        self, context: JobContext, committables: Sequence[Committable], confirmed: frozenset[str]
    ) -> list[Settled]:
        """On the driver: settle every committable of the restored checkpoint, in the given order.

        `confirmed` names those whose commit was confirmed to the coordinator before the crash. Commits what is open,
        accepts what is committed, and reports what is lost; must not open or initialise anything. Idempotent.

        What is open behind a lost one of the same subtask may be held back, neither committed nor aborted: then the
        framework either writes both again, after `give_up`, or refuses to go on.
        """

    def give_up(self, context: JobContext, committables: Sequence[Committable]) -> list[Settled]:
        """On the driver: make sure that these, which `recover` held back, are never committed; say what became of them.

        Their output is written again if, and only if, every one is certainly lost. A sink that holds nothing back needs
        none of this.
        """
        return []

    def commit_held(self, context: JobContext, committables: Sequence[Committable]) -> list[Settled]:
        """On the driver: commit what `recover` held back, because a person goes on without what was lost before it."""
        return []

    def abort_lingering(self, context: JobContext) -> list[str]:
        """On the driver, after `recover`: abort what earlier attempts left open; return the names, for the log.

        Called again after the first completed checkpoint of the attempt, every half minute from then on, and when the
        job has finished, on a thread of its own, for what a late zombie opened; then transactions of `context.attempt`
        itself must be left alone. Those of a later attempt always: a driver may itself be the zombie.
        """
        return []

    @property
    def topics(self) -> tuple[str, ...]:
        """What is written to, where that is known before a record is."""
        return ()

    def with_access(self, properties: Mapping[str, Any]) -> TwoPhaseCommitSink[Txn]:
        """Return this sink with Kafka properties that the whole job has, where it sets none of its own."""
        return self

    def watched(self, context: JobContext) -> AbstractContextManager[object]:
        """On the driver, while a run lasts: say once when the output can't be reached, and once when it can again."""
        return nullcontext()

    def describe(self) -> Mapping[str, Any]:
        """What the job's description and logs show of this sink. Holds nothing secret."""
        return {"type": type(self).__name__}

    def close(self) -> None:
        """Let go of everything; pre-committed transactions stay as they are."""
