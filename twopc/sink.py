"""The contract of a sink: what a job writes to, so that a reader sees the effect of each record exactly once.

Three roles, and a fourth where a sink wants one, each opened where it is needed:

- `Sink`, the description in the job: data, copied to the driver and to every subtask, with nothing open;
- `SinkWriter`, on a subtask: writes one transaction after the other, pre-commits each, and commits it;
- `Committer`, on the driver: decides about what writers of earlier attempts have left;
- `GlobalCommitter`, on the driver: commits once a checkpoint what the writers of all subtasks have pre-committed.

What the framework guarantees: a writer's `pre_commit` returns before the snapshot is acknowledged; `commit` is called
only after the completion record exists, for every pre-committed transaction, oldest first; `claim`, then `settle` of
everything that the latest completed checkpoint holds, then `abort_lingering`, all before any writer of the attempt is
opened. After a crash what was committed may be committed again, so `commit` and `settle` must be idempotent.

A global committer gets each completed checkpoint that has committables of its sink, the oldest first, and again after a
recovery, with the same committables, until the ledger holds that it has committed them: so it, too, must be idempotent.
Until then the checkpoint is kept; a job ends only when nothing is outstanding; and a recovery commits globally between
`settle` and `abort_lingering`. What was committed globally stays so when an earlier checkpoint is restored (`--from`):
its input is read again, under greater checkpoint ids, and the output is there twice, of which the driver warns.

`twopc.two_phase.TwoPhaseCommitSink` is the simple door to this: one class with Flink's names. `twopc.kafka` implements
the contract itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

from twopc.context import JobContext, SubtaskContext
from twopc.protocol.attempts import NO_TRACES, Traces
from twopc.protocol.facts import Committable, KnownOutput, SplitPosition
from twopc.protocol.ids import CheckpointId
from twopc.protocol.messages import Complete
from twopc.record import Batch
from twopc.source import Source, Split


@dataclass(frozen=True, slots=True)
class PreCommit:
    """For which checkpoint a transaction is pre-committed, and up to where the input went into it.

    `follower` is whom the writer tells the positions together with its output: a Kafka writer commits them to that
    consumer group inside the transaction, as a witness of the outcome. None where the writer is to tell nobody
    (`SharedTransaction.cluster`).
    """

    checkpoint_id: CheckpointId
    positions: tuple[SplitPosition, ...]
    follower: str | None


class Outcome(Enum):
    """The outcome of a committable when it was settled."""

    COMMITTED = "committed now"
    ALREADY_COMMITTED = "already committed"
    LOST = "lost"
    HELD = "held back"


@dataclass(frozen=True, slots=True)
class Settled:
    """The outcome of one committable, with the evidence in a sentence that a person can read.

    `certain`, of one that is lost: nothing of it is or will ever be visible, so that writing it again is exact. Without
    `holds_output` there is nothing in it that a reader could miss, or see: positions only.
    """

    committable: Committable
    outcome: Outcome
    evidence: str
    certain: bool = False
    holds_output: bool = True


@dataclass(frozen=True, slots=True)
class SharedTransaction:
    """A transaction that every sink of a job with the same `id` writes into: see `twopc.transaction_group`.

    `cluster` is the id of the cluster to whose followers a commit brings the positions of a PreCommit. Where that is
    not the cluster of the source's follower, and where it is None, the framework tells the follower the positions of
    completed checkpoints beside the sink. Never both: the two could overtake each other, and it would be told to go
    back. `settings` must be equal in all sinks that share it; they may hold secrets.
    """

    id: str
    cluster: str | None = None
    settings: Any = field(default=None, repr=False)


class SinkWriter(ABC):
    """Writes for one subtask of one attempt. The data loop calls it, all but `commit`, which the commit thread calls.

    In turn: `begin`, `write`..., `pre_commit`; after a committable `begin` again. At the end `abort`, then `close`.
    """

    @property
    @abstractmethod
    def open_transaction(self) -> str | None:
        """The name of the open transaction, for people; None where none is open."""

    @abstractmethod
    def begin(self) -> None:
        """Open a transaction for the records up to the next checkpoint."""

    @abstractmethod
    def write(self, batch: Batch) -> int:
        """Write the batch into the open transaction; return how many records were written.

        For records that can't be written, raise RecordsRefused after all others were: the policy of their source
        (`on_error`) says what becomes of them. Whatever else is raised ends the attempt.
        """

    def join(self, sink: Sink) -> Callable[[Batch], int]:
        """Let another sink of the group write into this writer's transactions; return what does it, like `write`.

        Called before the first `begin`, for sinks with the same `shared_transaction` as the one that was opened.
        """
        raise NotImplementedError(f"{type(self).__name__} shares its transactions with no other sink")

    def bytes_written(self) -> Sequence[int]:
        """The bytes of the values that were written so far: of this sink, then of each that joined, in order.

        For monitoring only; none where nobody counts.
        """
        return ()

    def known_outputs(self, earlier: Sequence[KnownOutput]) -> Sequence[KnownOutput]:
        """What the next start is to compare with what is there then: `Committer.compare` gets it.

        Asked for each snapshot, after `pre_commit`. `earlier` is what the restored checkpoint has of this group, for
        outputs that this writer may not have met yet.
        """
        return ()

    @abstractmethod
    def pre_commit(self, request: PreCommit) -> Committable | None:
        """Make the transaction durable and able to be committed by another process, whatever happens to this one.

        Return None if it holds nothing: then it stays open, and `begin` is not called. After a committable has been
        returned, `commit` must succeed. Raise CheckpointDeclined if this can't be done for this checkpoint, any other
        error if the transaction is spoilt.
        """

    @abstractmethod
    def commit(self, committable: Committable, proof: Complete) -> None:
        """Commit a transaction that this writer pre-committed. Idempotent. Raise TransactionLost if it is gone."""

    def release(self, completed: CheckpointId) -> None:
        """Everything up to this checkpoint is committed and confirmed: resources held for it may be used again."""

    @abstractmethod
    def abort(self) -> None:
        """Abort the open transaction, if there is one; never a pre-committed one."""

    def close(self) -> None:
        """Let go of everything; pre-committed transactions stay as they are."""


class Committer(ABC):
    """Decides on the driver, for one attempt, about what writers of earlier attempts have left.

    The driver's main thread calls it; `abort_lingering` also a thread beside it.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def join(self, sink: Sink) -> None:
        """Decide for another sink of the group too; called before anything else."""
        raise NotImplementedError(f"{type(self).__name__} decides for one sink")

    def traces(self) -> Traces:
        """The traces of this job's attempts outside, whatever the checkpoint folder knows of them.

        The next attempt gets a greater number, also where the checkpoints of those before it are gone (a deleted or
        another checkpoint folder): otherwise it would take what they left for its own.
        """
        return NO_TRACES

    def claim(self) -> None:
        """Make this attempt known where the output goes.

        Raise Fenced if another run, which may have a ledger of its own, has this attempt's number, or a later one.
        """
        return

    @abstractmethod
    def settle(self, committables: Sequence[Committable], confirmed: frozenset[str]) -> list[Settled]:
        """Settle every committable of the latest completed checkpoint, in the given order.

        `confirmed` names those whose commit was confirmed to the coordinator before the crash. Commits what is open,
        accepts what is committed, and reports what is lost; must not open or initialise anything. Idempotent.

        What is open behind a lost one of the same subtask may be held back, neither committed nor aborted: then the
        framework either writes both again, after `give_up`, or refuses to go on.
        """

    def give_up(self, committables: Sequence[Committable]) -> list[Settled]:
        """Make sure that these, which `settle` held back, are never committed; say what became of them.

        Their output is written again if, and only if, every one is certainly lost. A committer that holds nothing back
        needs none of this.
        """
        return []

    def commit_held(self, committables: Sequence[Committable]) -> list[Settled]:
        """Commit what `settle` held back, because a person goes on without what was lost before it."""
        return []

    def abort_lingering(self) -> list[str]:
        """Abort what earlier attempts left open; return the names, for the log.

        Called after `settle`; then again after the first completed checkpoint of the attempt, every half minute from
        then on, and when the job has finished, on a thread of its own, for what a late zombie opened; from the second
        call on transactions of this attempt itself must be left alone. Those of a later attempt always: a driver may
        itself be the zombie.
        """
        return []

    def compare(self, known: Sequence[KnownOutput]) -> None:
        """Say what has become of these outputs since the latest completed checkpoint, and what follows from it.

        Called after the first `abort_lingering`. Must not raise because of a difference: what was written is out.
        """
        return

    def close(self) -> None:
        """Let go of everything."""


class GlobalCommitter(ABC):
    """Commits on the driver, once a checkpoint, what the writers of all subtasks have pre-committed: as one whole.

    Opened for one turn of commits, on a thread of its own, of which a driver never has two at once. A driver that was
    taken for dead may wake, and commit beside its successor what that one commits: a commit must bear that.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def commit(self, checkpoint_id: CheckpointId, committables: Sequence[Committable]) -> None:
        """Commit all of them, or none: idempotent by job and checkpoint, whose ids only grow.

        What is raised ends the attempt; the next one, if the restart strategy has one, calls this again. Raise
        TransactionLost if output is gone, Fenced if a later attempt has taken over.
        """

    def close(self) -> None:
        """Let go of everything."""


def reads_own_output(job: str, source: str, output: str) -> str:
    """Say that a job would read what it writes itself, and what to do."""
    return (
        f"job {job!r} writes {output!r} and {source!r} reads it: each record would come again, for ever. Write to "
        "another one, for dead letters too, or leave it out of a pattern with exclude="
    )


class Sink(ABC):
    """The description of an output in a job. It is copied to every subtask, and opens nothing by itself."""

    @abstractmethod
    def open_writer(self, context: SubtaskContext) -> SinkWriter:
        """On a subtask: prepare to write. Nothing of an earlier attempt is pending any more."""

    @abstractmethod
    def open_committer(self, context: JobContext) -> Committer:
        """On the driver: prepare to decide, for this attempt; `context.attempt` is 0 where none was started yet."""

    def open_global_committer(self, context: JobContext) -> GlobalCommitter | None:
        """On the driver: prepare to commit for all subtasks; None where the writers' own commits do it.

        Where there is one, the writers' `commit` may do nothing: the committables are outstanding until this has
        committed them. Of sinks that share a transaction the first may have one; another that has is refused.
        """
        return None

    def shared_transaction(self, context: JobContext) -> SharedTransaction | None:
        """On the driver: the transaction that this sink shares with others of the job; None where it shares none."""
        return None

    def beside(self, others: Sequence[Sink]) -> Sink:
        """Return this sink, of which the job reads what it writes, as it writes beside the others of the job."""
        return self

    def check_splits(self, context: JobContext, splits: Sequence[Split]) -> None:
        """On the driver, before a record is read: raise ConfigurationError where it can't take what comes of these.

        They are the planned splits of the sources from which records come here.
        """

    def read_by(self, source: Source) -> str | None:
        """The output that a source reads too, as far as both say so before they are opened; None for none."""
        return None

    def refuse_inputs(self, context: JobContext, splits: Sequence[Split]) -> None:
        """On the driver, before a record is read: raise ConfigurationError where one of these is a piece of an output.

        They are the planned splits of all sources, but for one that is meant to read what this writes.
        """

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs, where they are known before a record is written."""
        return ()

    def with_access(self, properties: Mapping[str, Any]) -> Sink:
        """Return this sink with Kafka properties that the whole job has, where it sets none of its own."""
        return self

    def watched(self, context: JobContext) -> AbstractContextManager[object]:
        """On the driver, while a run lasts: say once when the output can't be reached, and once when it can again."""
        return nullcontext()

    def describe(self) -> Mapping[str, Any]:
        """The description of this sink in the job's own and in logs. Holds nothing secret."""
        return {"type": type(self).__name__}
