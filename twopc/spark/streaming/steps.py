"""One micro-batch: what the driver of a query does, step by step, as a generator. Pure: the edge carries steps out.

Spark calls a sink for batch N only after batch N-1 has returned in some driver of the query, and calls it again for the
same N, with the same input, until it has returned once. Two drivers may believe that the query is theirs. Invariants:

- A batch's output are the transactions that its decision names. The decision is stored once, before the first EndTxn,
  and after every transaction that it names is pre-committed: it is the commit point.
- A batch that is decided is computed, and nothing of it is written: Spark wants its state, readers have its rows.
- Of what others have open, only that is aborted which was open before this run stored its decision, and only behind it:
  until then the others may still store one, and what they open later may belong to a later batch.
- A decided batch is written again only when the broker says of everything that the decision names that it was aborted.
  Before the first commit all are looked at, and one is committed before the others, so that a loss is found while none
  of them is visible.
- An error that leaves it open whether a decision is stored ends the run, and nothing is ended: the next run reads it.

Where Spark has the tasks write before it asks (`format("twopc-kafka")`), a batch that is decided is written too, and
what was written is aborted: no decision names it. Where Spark tells that a batch failed, only that is aborted which
nobody has asked to commit.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Any

from twopc.errors import ConfigurationError, Fenced, TransactionLost
from twopc.protocol.facts import Committable
from twopc.sink import Outcome, Settled
from twopc.spark.streaming.decision import FIRST_REVISION, Decision, StoredDecisions, WrittenBatch


@dataclass(frozen=True, slots=True)
class ReadDecisions:
    """Answered by what is `StoredDecisions` of this batch."""

    batch: int


@dataclass(frozen=True, slots=True)
class Write:
    """Compute the batch and pre-commit its rows; answered by what was `WrittenBatch`."""

    batch: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Compute the batch and write nothing."""

    batch: int


@dataclass(frozen=True, slots=True)
class Decide:
    """Store the decision; answered by it as it is stored, or by None where another, or a later batch's, is."""

    batch: int
    revision: int
    transactions: tuple[Committable, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """Answered by what became of the transactions so far; HELD is what is open and whole."""

    transactions: tuple[Committable, ...]


@dataclass(frozen=True, slots=True)
class End:
    """Commit, or abort, what is open of these; answered by what became of each."""

    transactions: tuple[Committable, ...]
    commit: bool


@dataclass(frozen=True, slots=True)
class AbortWritten:
    """Abort these, as far as that can be done now. No decision names any of them, and none will."""

    transactions: tuple[Committable, ...]


@dataclass(frozen=True, slots=True)
class AbortRun:
    """Abort what this run has open, as far as that can be done now. No decision names any of it."""


@dataclass(frozen=True, slots=True)
class ListOpen:
    """Answered by the ids of all transactions that any run of the query has open; by none where that is not due.

    It is due when tasks were begun again, which leaves what their first tries had open.
    """

    is_due: bool


@dataclass(frozen=True, slots=True)
class Sweep:
    """Abort what is open under these ids, as far as that can be done now, but for these transactions."""

    opened: frozenset[str]
    transactions: tuple[Committable, ...]


Step = ReadDecisions | Write | Drain | Decide | Look | End | AbortWritten | AbortRun | ListOpen | Sweep
Steps = Generator[Step, Any, Decision]


class Verdict(Enum):
    """The verdict on a decided batch."""

    COMMIT = "all of it is there, or a person gave up what is not"
    WRITE_AGAIN = "all of it is aborted"
    LOST = "a part is lost, and can't be written again"


def batch_steps(batch: int, first: int = 0, accepted: Iterable[str] = ()) -> Steps:
    """Yield the steps of a batch; return its decision. `accepted` are the lost transactions that a person gives up.

    `first` is the first batch of the query that this sink has. Raises Fenced where another driver is ahead,
    TransactionLost where output is missing, ConfigurationError where decisions are.
    """
    known: StoredDecisions = yield ReadDecisions(batch)
    _check_order(batch, first, known.newest_batch)
    finished = yield from _finish(known.decision, frozenset(accepted))
    if finished is not None:
        yield Drain(batch)
        return finished
    try:
        written: WrittenBatch = yield Write(batch)
    except Exception:
        yield AbortRun()
        raise
    return (yield from _decide(batch, _revision_behind(known.decision), written))


def commit_steps(batch: int, written: WrittenBatch, first: int = 0, accepted: Iterable[str] = ()) -> Steps:
    """Yield the steps of a batch that is written already, by the tasks that Spark counts; the rest is as above."""
    try:
        known: StoredDecisions = yield ReadDecisions(batch)
        _check_order(batch, first, known.newest_batch)
        finished = yield from _finish(known.decision, frozenset(accepted))
    except Exception:
        yield AbortWritten(written.transactions)
        raise
    if finished is not None:
        yield AbortWritten(written.transactions)
        return finished
    return (yield from _decide(batch, _revision_behind(known.decision), written))


def given_up(messages: Sequence[tuple[Committable, ...] | None]) -> tuple[Committable, ...]:
    """Return what is aborted when Spark says that a batch failed: `messages` is of each task, None where it failed.

    Where no task failed, Spark has asked to commit all of it before, and that failed: it may be decided, or be so yet.
    The next run reads whether it is.
    """
    return tuple(chain.from_iterable(filter(None, messages))) if None in messages else ()


def _finish(decision: Decision | None, accept: frozenset[str]) -> Generator[Step, Any, Decision | None]:
    """Commit what a decision names, and return it; None where the batch is to be written, or written again."""
    if decision is None:
        return None
    looked: Sequence[Settled] = yield Look(decision.transactions)
    verdict = judge(looked, accept)
    if verdict is Verdict.WRITE_AGAIN:
        looked = yield End(decision.transactions, commit=False)
        verdict = judge(looked, accept)
    if verdict is Verdict.WRITE_AGAIN:
        return None
    yield from _commit(decision, looked, accept)
    return decision


def _revision_behind(decision: Decision | None) -> int:
    return FIRST_REVISION if decision is None else decision.revision + 1


def _decide(batch: int, revision: int, written: WrittenBatch) -> Steps:
    """Make what was written the batch's output."""
    opened: frozenset[str] = yield ListOpen(is_due=written.tries > 1)
    decision: Decision | None = yield Decide(batch, revision, written.transactions)
    if decision is None:
        yield End(written.transactions, commit=False)
        raise Fenced(
            f"another driver of this query has decided batch {batch} meanwhile, or one behind it: this one ends, and "
            "what it wrote is aborted. A query can have one driver at a time: stop the other one, or leave it alone"
        )
    looked: Sequence[Settled] = yield Look(decision.transactions)
    yield from _commit(decision, looked, frozenset())
    yield Sweep(opened, decision.transactions)
    return decision


def _commit(decision: Decision, looked: Sequence[Settled], accepted: frozenset[str]) -> Generator[Step, Any, None]:
    """Commit what is open of a decided batch; raise TransactionLost where some of it is gone."""
    verdict = judge(looked, accepted)
    # One alone, then all others: while nothing is visible a loss is one that heals.
    for at, transactions in enumerate((decision.transactions[:1], decision.transactions[1:])):
        if verdict is Verdict.COMMIT and transactions:
            ended: Sequence[Settled] = yield End(transactions, commit=True)
            looked = [*ended, *looked[1:]] if at == 0 else [*looked[:1], *ended]
            verdict = judge(looked, accepted)
    if verdict is not Verdict.COMMIT:
        raise _lost(decision, looked, accepted, verdict)


def judge(looked: Sequence[Settled], accepted: frozenset[str]) -> Verdict:
    """Return what to do about a decided batch, by what became of its transactions."""
    lost = [
        settled for settled in looked if settled.outcome is Outcome.LOST and settled.committable.name not in accepted
    ]
    if not lost:
        return Verdict.COMMIT
    visible = any(settled.outcome in (Outcome.COMMITTED, Outcome.ALREADY_COMMITTED) for settled in looked)
    certain = all(settled.certain for settled in looked if settled.outcome is Outcome.LOST)
    return Verdict.WRITE_AGAIN if certain and not visible else Verdict.LOST


def _lost(decision: Decision, looked: Sequence[Settled], accepted: frozenset[str], verdict: Verdict) -> TransactionLost:
    lost = [
        settled for settled in looked if settled.outcome is Outcome.LOST and settled.committable.name not in accepted
    ]
    evidence = "; ".join(f"{settlement.committable.name}: {settlement.evidence}" for settlement in lost)
    begun = (
        f"batch {decision.batch} is decided, and {len(lost)} of its {len(looked)} transactions are lost ({evidence})"
    )
    if verdict is Verdict.WRITE_AGAIN:
        error = TransactionLost(
            f"{begun}. None of it is visible: start the query again, and the batch is written again"
        )
        error.restartable = True
        return error
    names = ", ".join(repr(settlement.committable.name) for settlement in lost)
    return TransactionLost(
        f"{begun}. Their output is missing for good, because other rows of the batch are visible, or nobody knows "
        f"whether they are. Look into the topic; to go on without them, give the sink accept_loss=[{names}], "
        "or option acceptLoss"
    )


def _check_order(batch: int, first: int, newest: int | None) -> None:
    if newest is not None and newest > batch:
        raise Fenced(
            f"Spark runs batch {batch}, but batch {newest} is decided already: another driver of this query is ahead, "
            "or its checkpointLocation was put back to an earlier state. What readers have can't be taken back: use "
            "the newer checkpointLocation, or begin a query of another name, with another topic"
        )
    if batch in (0, first) or newest in (batch, batch - 1):
        return
    kept = "none is kept" if newest is None else f"the newest that is kept is of batch {newest}"
    raise ConfigurationError(
        f"Spark runs batch {batch}, but no decision about batch {batch - 1} is kept where decisions= says ({kept}). If "
        f"the query had another sink until now, say first_batch={batch}, or option firstBatch; otherwise name the "
        "place that it had, or what was written by that batch may be written twice"
    )
