"""Deliberate breaks of what a query's driver, its workers or its brokers do, each of which some play must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any
from unittest.mock import patch

from tests.simulation.queries.altered_steps import Alter, Altered
from tests.simulation.queries.brokers import Brokers, State
from tests.simulation.queries.driver import Driver, FormatDriver
from tests.simulation.queries.plays import MakeDriver
from tests.simulation.queries.world import Worker
from twopc.errors import Unavailable
from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId
from twopc.sink import Outcome, Settled
from twopc.spark.streaming import steps
from twopc.spark.streaming.decision import Decision, StoredDecisions
from twopc.spark.streaming.steps import (
    AbortWritten,
    Decide,
    Drain,
    End,
    ListOpen,
    ReadDecisions,
    Step,
    Sweep,
    Verdict,
    Write,
)

FOREACH_BATCH, FORMAT = (Driver,), (FormatDriver,)
BOTH = (Driver, FormatDriver)


@dataclass(frozen=True)
class QueryMutant:
    """One break, of which drivers; by its steps, or by a patch that is in force while a play is played."""

    what: str
    kinds: tuple[type[Driver], ...]
    alter: Alter | None = None
    patched: Callable[[], AbstractContextManager[Any]] | None = None

    @contextmanager
    def applied(self, kind: type[Driver]) -> Iterator[MakeDriver]:
        """Yield what makes the broken driver."""
        made: MakeDriver = kind if self.alter is None else partial(kind, alter=self.alter)
        if self.patched is None:
            yield made
        else:
            with self.patched():
                yield made

    def __str__(self) -> str:
        return self.what.replace(" ", "-")


def instead(owner: object, name: str, value: object) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: patch.object(owner, name, value)


def _sweeps_first(step: Step) -> Altered:
    if isinstance(step, Decide):
        opened = yield ListOpen(is_due=True)
        yield Sweep(opened, step.transactions)
    return (yield step)


def _sweeps_when_it_has_drained(step: Step) -> Altered:
    if isinstance(step, Drain):
        opened = yield ListOpen(is_due=True)
        yield Sweep(opened, ())
    return (yield step)


def _lists_behind_its_decision(step: Step) -> Altered:
    if isinstance(step, Sweep):
        opened = yield ListOpen(is_due=True)
        return (yield replace(step, opened=opened))
    return (yield step)


def _reads_nothing(step: Step) -> Altered:
    answer = yield step
    if isinstance(step, ReadDecisions):
        return StoredDecisions(step.batch - 1 if step.batch else None)
    if isinstance(step, Decide) and answer is None:
        return Decision(step.batch, step.revision, AttemptId(0), step.transactions)
    return answer


def _commits_before_it_decides(step: Step) -> Altered:
    if isinstance(step, Decide):
        yield End(step.transactions, commit=True)
    return (yield step)


def _writes_what_is_decided(step: Step) -> Altered:
    if isinstance(step, Drain):
        written = yield Write(step.batch)
        return (yield End(written.transactions, commit=True))
    return (yield step)


def _commits_what_is_decided_and_written_again(step: Step) -> Altered:
    if isinstance(step, AbortWritten):
        return (yield End(step.transactions, commit=True))
    return (yield step)


def _takes_a_decided_batch_for_done(step: Step) -> Altered:
    answer = yield step
    if isinstance(step, ReadDecisions) and answer.decision is not None:
        return replace(answer, decision=replace(answer.decision, transactions=()))
    return answer


def _computes_nothing_that_is_decided(step: Step) -> Altered:
    if isinstance(step, Drain):
        return None
    return (yield step)


def _takes_no_answer_for_stored(step: Step) -> Altered:
    try:
        return (yield step)
    except Unavailable:
        if isinstance(step, Decide):
            return Decision(step.batch, step.revision, AttemptId(0), step.transactions)
        raise


def _takes_no_answer_for_a_refusal(step: Step) -> Altered:
    try:
        return (yield step)
    except Unavailable:
        if isinstance(step, Decide):
            return None
        raise


def _leaves_the_rest_of_a_lost_batch(step: Step) -> Altered:
    if isinstance(step, End) and not step.commit:
        return [Settled(each, Outcome.LOST, "", certain=True) for each in step.transactions]
    return (yield step)


def _all_that_was_told(told: Sequence[tuple[Committable, ...] | None]) -> tuple[Committable, ...]:
    return tuple(chain.from_iterable(filter(None, told)))


def _writes_again_whatever_is_visible(looked: Sequence[Settled], accepted: frozenset[str]) -> Verdict:
    lost = any(each.outcome is Outcome.LOST for each in looked)
    return Verdict.WRITE_AGAIN if lost else Verdict.COMMIT


def _one_id_a_partition(worker: Worker, run: int, number: int, partition: int) -> str:
    return f"{run}-p{partition}"


def _one_id_a_partition_for_every_run(worker: Worker, run: int, number: int, partition: int) -> str:
    return f"0-p{partition}"


def _whatever_is_not_done(brokers: Brokers) -> list[str]:
    return brokers.ids_in(State.OPEN, State.COMMITTING)


def _goes_on_behind_an_abort(worker: Worker, run: int) -> bool:
    return run == worker.run and not worker.brokers.is_fenced(worker.id, worker.epoch)


MUTANTS = (
    QueryMutant("what others have open is aborted before the decision", BOTH, _sweeps_first),
    QueryMutant("who decided nothing aborts what others have open", FOREACH_BATCH, _sweeps_when_it_has_drained),
    QueryMutant("what is open is listed behind the decision", BOTH, _lists_behind_its_decision),
    QueryMutant("nobody reads what was decided", BOTH, _reads_nothing),
    QueryMutant("a batch is committed before it is decided", BOTH, _commits_before_it_decides),
    QueryMutant("a batch that is decided is written", FOREACH_BATCH, _writes_what_is_decided),
    QueryMutant("what was written of a decided batch is committed", FORMAT, _commits_what_is_decided_and_written_again),
    QueryMutant("a batch that is decided is taken for committed", BOTH, _takes_a_decided_batch_for_done),
    QueryMutant("a batch that is decided is not computed", FOREACH_BATCH, _computes_nothing_that_is_decided),
    QueryMutant(
        "what is aborted for Spark may be decided", FORMAT, patched=instead(steps, "given_up", _all_that_was_told)
    ),
    QueryMutant("a partition has one id in a run", BOTH, patched=instead(Worker, "new_id", _one_id_a_partition)),
    QueryMutant("a partition has one id", BOTH, patched=instead(Worker, "new_id", _one_id_a_partition_for_every_run)),
    QueryMutant(
        "a producer goes on behind an abort", FORMAT, patched=instead(Worker, "goes_on", _goes_on_behind_an_abort)
    ),
    QueryMutant(
        "what is being committed is listed as open", FORMAT, patched=instead(Brokers, "open_ids", _whatever_is_not_done)
    ),
)
"""Noticed although all is answered and nothing expires."""

MUTANTS_OF_SILENCE = (
    QueryMutant("no answer is taken for a stored decision", BOTH, _takes_no_answer_for_stored),
    QueryMutant("no answer is taken for another driver's decision", BOTH, _takes_no_answer_for_a_refusal),
)
"""Noticed where answers are lost."""

MUTANTS_OF_EXPIRY = (
    QueryMutant("a part of a lost batch stays open", BOTH, _leaves_the_rest_of_a_lost_batch),
    QueryMutant(
        "a batch is written again of which a part is visible",
        BOTH,
        patched=instead(steps, "judge", _writes_again_whatever_is_visible),
    ),
)
"""Noticed where transactions expire."""
