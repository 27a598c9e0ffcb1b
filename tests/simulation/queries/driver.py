"""Drivers of a query, played in pieces: whatever another process may see in between is a piece of its own.

The steps are the real ones (`twopc.spark.streaming.steps`); what carries them out is simulated here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, assert_never

from tests.simulation.queries.altered_steps import Alter, altered, as_it_is
from tests.simulation.queries.brokers import State
from tests.simulation.queries.world import PARTITIONS, Session, Silence, World
from twopc.errors import TwoPhaseCommitError, Unavailable
from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId, CheckpointId, SubtaskIndex
from twopc.spark.streaming import steps
from twopc.spark.streaming.decision import Decision, StoredDecisions, WrittenBatch
from twopc.spark.streaming.steps import (
    AbortRun,
    AbortWritten,
    Decide,
    Drain,
    End,
    ListOpen,
    Look,
    ReadDecisions,
    Step,
    Steps,
    Sweep,
    Write,
    batch_steps,
    commit_steps,
)

Pieces = Generator[None, None, Any]


class ConcurrentUpdateError(Exception):
    """Spark's log has the batch already: another driver wrote it."""


class FailedTaskError(TwoPhaseCommitError):
    """A task has failed as often as Spark tries it."""


class DeadPlannerError(TwoPhaseCommitError):
    """The process that commits for Spark is gone."""


@dataclass(frozen=True)
class Fate:
    """A fault beside a driver.

    tries: how often the tasks of a partition are begun; all but the last die behind their pre-commit.
    sleeps: whether they sleep instead, and write when they wake.
    failing: the batch of which a task fails for good.
    planner_pieces: after so many pieces of what commits it dies, where that is a process of its own.
    """

    tries: int = 1
    sleeps: bool = False
    failing: int | None = None
    planner_pieces: int | None = None


class Driver:
    """One start of the query, with `foreachBatch`. `accepted` are losses that a person gives up."""

    def __init__(
        self,
        world: World,
        fate: Fate = Fate(),
        session: Session | None = None,
        alter: Alter = as_it_is,
        accepted: Iterable[str] = (),
    ) -> None:
        self.world = world
        self.session = session or Session(world)
        self.run = self._run()
        self.error: Exception | None = None
        self.ended = False
        self._fate = fate
        self._alter = alter
        self._accepted = tuple(accepted)
        self._done: int | None = None
        self._computed: list[int] = []
        self._pieces = self._query()

    def go_on(self, pieces: int = 1) -> None:
        """Play so many pieces, or those that are left."""
        for _ in range(pieces):
            if self.ended:
                return
            self.world.go_on()
            try:
                next(self._pieces)
            except StopIteration:
                self.ended = True
            except (TwoPhaseCommitError, ConcurrentUpdateError) as error:
                self.error, self.ended = error, True

    def to_the_end(self) -> None:
        while not self.ended:
            self.go_on()

    def kill(self) -> None:
        self.ended = True

    def _run(self) -> int:
        return next(self.world.runs)

    def _query(self) -> Pieces:
        batch = self.world.committed_batches
        while batch < self.world.batches:
            yield
            self._computed = []
            yield from self._batch(batch)
            yield
            if self.world.committed_batches > batch:
                raise ConcurrentUpdateError(f"batch {batch}")
            self.world.committed_batches = batch + 1
            batch += 1

    def _batch(self, batch: int) -> Pieces:
        yield from self._play(batch, batch_steps(batch, accepted=self._accepted))

    def _play(self, batch: int, planned: Steps) -> Pieces:
        played = altered(planned, self._alter)
        step = next(played)
        while True:
            try:
                answer = yield from self._carry_out(step)
            except (Unavailable, FailedTaskError) as error:
                step = played.throw(error)
                continue
            try:
                step = played.send(answer)
            except StopIteration:
                self._done = batch
                assert self._computed == [batch], "a batch that Spark counts was not computed, or twice"
                return

    def _carry_out(self, step: Step) -> Pieces:
        yield
        match step:
            case ReadDecisions(batch):
                return self.world.ask(lambda: self._known(batch))
            case Write(batch):
                return (yield from self._compute(batch))
            case Drain(batch):
                return self._computed.append(batch)
            case Decide(batch, revision, transactions):
                made = Decision(batch, revision, AttemptId(self.run), transactions)
                found = self.world.ask(lambda: self.world.decisions.setdefault((batch, revision), made))
                return made if found is made else None
            case Look(transactions):
                return (yield from self._each(transactions, None))
            case End(transactions, commit):
                return (yield from self._each(transactions, State.COMMITTED if commit else State.ABORTED))
            case ListOpen():
                return frozenset(self.world.brokers.open_ids())
            case AbortWritten() | AbortRun() | Sweep():
                return (yield from self._abort_what_none_names(step))
            case _:
                assert_never(step)

    def _abort_what_none_names(self, step: AbortWritten | AbortRun | Sweep) -> Pieces:
        brokers = self.world.brokers
        match step:
            case AbortWritten(transactions):
                yield from self._abort(transactions)
            case AbortRun():
                yield from self._take_over(each for each in brokers.open_ids() if each.startswith(f"{self.run}-"))
            case Sweep(opened, transactions):
                yield from self._take_over(
                    sorted(opened - {brokers.transactions[each.name].id for each in transactions})
                )

    def _known(self, batch: int) -> StoredDecisions:
        if self._done is not None:
            return StoredDecisions(self._done)
        keys = self.world.decisions
        revisions = [revision for number, revision in keys if number == batch]
        newest = max((number for number, _ in keys), default=None)
        return StoredDecisions(newest, keys[batch, max(revisions)] if revisions else None)

    def _compute(self, batch: int) -> Pieces:
        """Have the tasks write; a failed one has aborted what it began."""
        written: WrittenBatch = yield from self._write(batch)
        if batch == self._fate.failing:
            self.world.brokers.end(written.transactions[-1], State.ABORTED)
            raise FailedTaskError
        return written

    def _write(self, batch: int) -> Pieces:
        self._computed.append(batch)
        written = []
        for partition in range(PARTITIONS):
            for _ in range(self._fate.tries - 1):
                yield
                once = self.session.sleep_and_write if self._fate.sleeps else self.session.write_and_die
                once(self.run, batch, partition)
            yield
            name = self.session.write(self.run, batch, partition)
            written.append(Committable(name, CheckpointId(batch), SubtaskIndex(partition), {}))
        return WrittenBatch(tuple(written), tries=self._fate.tries)

    def _each(self, transactions: Iterable[Committable], wanted: State | None) -> Pieces:
        settled = []
        for committable in transactions:
            yield
            settled.append(self.world.ask(partial(self.world.brokers.end, committable, wanted)))
        return settled

    def _abort(self, transactions: Iterable[Committable]) -> Pieces:
        for each in transactions:
            yield
            if self.world.silence() is not Silence.LOST:
                self.world.brokers.end(each, State.ABORTED)

    def _take_over(self, ids: Iterable[str]) -> Pieces:
        for each in list(ids):
            yield
            if self.world.silence() is not Silence.LOST:
                self.world.brokers.initialise(each)


class FormatDriver(Driver):
    """A driver whose tasks write before anybody looks at what is decided, as `format("twopc-kafka")` does.

    Where the process that commits dies, Spark asks another one to abort. A query that is started again in one session
    has the same run.
    """

    _committing = 0

    def _run(self) -> int:
        return self.session.run

    def _batch(self, batch: int) -> Pieces:
        written: WrittenBatch = yield from self._write(batch)
        told: list[tuple[Committable, ...] | None] = [(each,) for each in written.transactions]
        try:
            if batch == self._fate.failing:
                told[-1] = None
                self.world.brokers.end(written.transactions[-1], State.ABORTED)
                raise FailedTaskError
            yield from self._until_it_dies(self._play(batch, commit_steps(batch, written, accepted=self._accepted)))
        except TwoPhaseCommitError:
            yield from self._abort(steps.given_up(told))
            raise

    def _until_it_dies(self, pieces: Pieces) -> Pieces:
        for _ in pieces:
            self._committing += 1
            if self._committing == self._fate.planner_pieces:
                raise DeadPlannerError
            yield
