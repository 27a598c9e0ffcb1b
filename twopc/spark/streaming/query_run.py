"""One run of a query by one driver: carries out what `twopc.spark.streaming.steps` says, at Spark, brokers and store.

A run has a number that it has claimed from the brokers; it stands in all of its transactional ids, so no two runs share
one, wherever their decisions are kept.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, assert_never

from twopc.errors import Fenced, TwoPhaseCommitError, Unavailable
from twopc.faults.points import CrashPoint, reached
from twopc.kafka.clients.leaders import LeaderClient
from twopc.kafka.clients.retry import call_with_retry
from twopc.kafka.topics.preflight import require_topics
from twopc.kafka.transactions.batch_writer import BatchWriterConfig
from twopc.kafka.transactions.claim import claim
from twopc.kafka.transactions.lingering_transactions import ongoing_ids, take_over, traces
from twopc.kafka.transactions.missing_markers import MARKERS_BUDGET_SECONDS, SLOW_COMMIT_SECONDS, close_committed
from twopc.kafka.transactions.resume import SettleAction, settle
from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId
from twopc.sink import Outcome, Settled
from twopc.spark.streaming.decision import Decision, StoredDecisions, WrittenBatch
from twopc.spark.streaming.decision_store import DecisionStore
from twopc.spark.streaming.observer import Observer
from twopc.spark.streaming.options import SinkOptions
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
)

log = logging.getLogger(__name__)

SETTLE_SECONDS = 120.0
LIST_SECONDS = 30.0
"""So often all brokers are asked for what is open, and after every batch of which a task was tried again."""

CLAIM_TRIES = 20

Compute = Callable[[Write | Drain], WrittenBatch | None]


def claimed(options: SinkOptions) -> BatchWriterConfig:
    """Claim a number for a run; raise ConfigurationError where the run can't work. Return what its tasks need."""
    client = LeaderClient(options.bootstrap_servers, options.properties)
    try:
        timeout_ms = options.checked_timeout_ms(call_with_retry(client.max_transaction_timeout_ms, 30.0))
        if options.topic is not None:
            require_topics(client, (options.topic,), "output")
        return options.writer_config(_claim(client, options.name, timeout_ms), timeout_ms)
    finally:
        client.close()


def _claim(client: LeaderClient, name: str, timeout_ms: int) -> AttemptId:
    for _ in range(CLAIM_TRIES):
        run = AttemptId(traces(client, name).newest + 1)
        try:
            claim(client, name, timeout_ms, run)
        except Fenced:
            continue
        return run
    raise Unavailable(f"no number could be claimed for a run of {name}: do many start at once?")


class QueryRun:
    """Used by one thread at a time. Close it."""

    def __init__(
        self, options: SinkOptions, query: str, config: BatchWriterConfig, observer: Observer | None = None
    ) -> None:
        self._observer = observer or Observer()
        self.query = query
        self.config = config
        self._decisions = DecisionStore(options.decisions, options.name)
        self._client = LeaderClient(config.bootstrap_servers, config.properties)
        self._done: int | None = None
        self._listed_at = -LIST_SECONDS

    @property
    def next_batch(self) -> int | None:
        """The batch that must follow in this run; None before its first."""
        return None if self._done is None else self._done + 1

    def do(self, batch: int, steps: Steps, compute: Compute) -> Decision:
        """Carry out the steps of a batch; return its decision. `compute` has Spark's tasks carry out theirs."""
        answer: Any = None
        step = next(steps)
        while True:
            began = time.monotonic()
            try:
                answer = self._answer(step, compute)
            except Exception as error:  # noqa: BLE001 - the steps say what is done about it
                step = steps.throw(error)
                continue
            self._observer.carried_out(step, answer, time.monotonic() - began)
            try:
                step = steps.send(answer)
            except StopIteration as ended:
                decision: Decision = ended.value
                if decision.transactions:
                    reached(CrashPoint.AFTER_COMMIT, checkpoint=batch)
                self._done = batch
                self._observer.committed(batch)
                self._forget_old(batch)
                return decision

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> QueryRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def abort(self, transactions: tuple[Committable, ...]) -> None:
        """Abort what no decision names, or ever will, as far as that can be done now."""
        with _later_where_it_fails():
            self._settled(transactions, SettleAction.ABORT)

    def _answer(self, step: Step, compute: Compute) -> Any:
        match step:
            case ReadDecisions(batch):
                return self._known(batch)
            case Write() | Drain():
                return compute(step)
            case Decide(batch, revision, transactions):
                return self._decide(Decision(batch, revision, self.config.run, transactions))
            case Look(transactions):
                return self._settled(transactions, SettleAction.HOLD)
            case End(transactions, commit):
                return self._settled(transactions, SettleAction.COMMIT if commit else SettleAction.ABORT)
            case AbortWritten(transactions):
                self.abort(transactions)
            case AbortRun():
                self._abort_run()
            case ListOpen(is_due):
                return self._open_ids(is_due=is_due)
            case Sweep(opened, transactions):
                self._sweep(opened, transactions)
            case _:
                assert_never(step)
        return None

    def _known(self, batch: int) -> StoredDecisions:
        # Behind a batch of its own there is no need to look: where another driver has decided the next one, or any
        # behind it, no decision of this one is stored.
        if self._done is not None:
            return StoredDecisions(self._done)
        try:
            self._decisions.claim_for(self.query)
            return self._decisions.known(batch)
        except OSError as error:
            raise Unavailable(
                f"the decisions in {self._decisions.place} can't be read ({error.strerror or error}): see that "
                "decisions= names a place that the query's driver may read and write, and start the query again"
            ) from error

    def _decide(self, decision: Decision) -> Decision | None:
        reached(CrashPoint.COORDINATOR_AFTER_ACKS, checkpoint=decision.batch)
        stored = self._decisions.decide(decision)
        reached(CrashPoint.COORDINATOR_AFTER_COMPLETION, checkpoint=decision.batch)
        return stored

    def _forget_old(self, batch: int) -> None:
        # Only growth is at stake, and the batch is committed.
        try:
            self._decisions.forget_old(batch)
        except OSError as error:
            log.warning("old decisions in %s are deleted later: %s", self._decisions.place, error.strerror or error)

    def _settled(self, transactions: tuple[Committable, ...], act: SettleAction) -> list[Settled]:
        began = time.monotonic()
        settled = [self._settle(transaction, act) for transaction in transactions]
        if act is SettleAction.COMMIT and (self._done is None or time.monotonic() - began > SLOW_COMMIT_SECONDS):
            done = [settlement.committable for settlement in settled if settlement.outcome is not Outcome.LOST]
            close_committed(self._client, done, MARKERS_BUDGET_SECONDS)
        return settled

    def _settle(self, committable: Committable, act: SettleAction) -> Settled:
        settled = settle(self._client, committable, confirmed=False, budget_seconds=SETTLE_SECONDS, act=act)
        if settled.outcome is Outcome.COMMITTED:
            reached(CrashPoint.AFTER_END_TXN, checkpoint=committable.checkpoint_id, subtask=committable.subtask)
        return settled

    def _abort_run(self) -> None:
        with _later_where_it_fails():
            opened = ongoing_ids(self._client, self.config.prefix)
            self._abort(each for each, name in opened.items() if name.attempt == self.config.run)

    def _open_ids(self, *, is_due: bool) -> frozenset[str]:
        if not is_due and time.monotonic() - self._listed_at < LIST_SECONDS:
            return frozenset()
        opened: frozenset[str] = frozenset()
        with _later_where_it_fails():
            opened = frozenset(ongoing_ids(self._client, self.config.prefix))
            self._listed_at = time.monotonic()
        return opened

    def _sweep(self, opened: frozenset[str], transactions: tuple[Committable, ...]) -> None:
        with _later_where_it_fails():
            self._abort(opened - {str(transaction.payload["transactional_id"]) for transaction in transactions})

    def _abort(self, ids: Iterable[str]) -> None:
        if ended := take_over(self._client, sorted(ids), self.config.timeout_ms):
            log.warning("aborted what no decision names: %s", ", ".join(ended))


@contextmanager
def _later_where_it_fails() -> Iterator[None]:
    """What is left open harms nobody but readers, who wait: it must not fail a batch that is written."""
    try:
        yield
    except TwoPhaseCommitError as error:
        log.warning("what is left open is aborted later, by this run of the query or by the next: %s", error)
