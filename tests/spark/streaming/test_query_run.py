"""A run of a query against a real broker, with writers in this process in place of Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.queries.altered_steps import altered
from twopc.errors import ConfigurationError, Fenced, Unavailable
from twopc.faults.points import CrashPoint
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.kafka.input.marker_wait import await_markers
from twopc.kafka.transactions.batch_writer import BatchWriter
from twopc.kafka.transactions.naming import parse_transactional_id
from twopc.protocol.facts import Committable
from twopc.spark.streaming import query_run
from twopc.spark.streaming.decision import WrittenBatch
from twopc.spark.streaming.decision_store import DecisionStore
from twopc.spark.streaming.observer import Observer
from twopc.spark.streaming.options import SinkOptions
from twopc.spark.streaming.query_run import QueryRun, claimed
from twopc.spark.streaming.rows import BatchRows, records_of
from twopc.spark.streaming.steps import Decide, Drain, End, Step, Steps, Write, batch_steps
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic, read_topic

pytestmark = pytest.mark.broker

PARTITIONS, ROWS = 2, 5


class KilledError(Exception):
    """Stands for the death of a driver: nothing of it runs any more."""


def values(batch: int, partition: int) -> list[bytes]:
    return [f"{batch}/{partition}/{number}".encode() for number in range(ROWS)]


def everything(batches: int) -> list[bytes]:
    return sorted(each for batch in range(batches) for number in range(PARTITIONS) for each in values(batch, number))


class WritingRun(QueryRun):
    """A run whose tasks are writers of this process; `tries` are how often each is begun, the last one counts."""

    tries = 1
    drained = 0
    numbers = count(100)

    def __init__(self, options: SinkOptions, query: str = "q-1") -> None:
        self.writers: list[BatchWriter] = []
        self.topic = options.topic
        super().__init__(options, query, claimed(options))

    def compute(self, step: Write | Drain) -> WrittenBatch | None:
        if isinstance(step, Drain):
            self.drained += 1
            return None
        return self.write(step.batch)

    def write(self, batch: int) -> WrittenBatch:
        while len(self.writers) < PARTITIONS:
            self.writers.append(BatchWriter(self.config))
        return WrittenBatch(tuple(self._task(batch, partition) for partition in range(PARTITIONS)), tries=self.tries)

    def _task(self, batch: int, partition: int) -> Committable:
        for _ in range(self.tries):
            if _ > 0:
                self.writers[partition].close()
                self.writers[partition] = BatchWriter(self.config)
            writer = self.writers[partition]
            writer.begin(next(self.numbers))
            columns = {"value": values(batch, partition)}
            for topic, records in records_of(columns, self.topic, BatchRows(batch, partition, range(ROWS))):
                writer.write(topic, records)
            made = writer.pre_commit(batch, partition)
        return made

    def batch(self, number: int, steps: Steps | None = None) -> None:
        self.do(number, steps or batch_steps(number), self.compute)

    def close(self) -> None:
        for writer in self.writers:
            writer.close()
        super().close()


def dying_before(kind: type[Step], batch: int) -> Steps:
    """The steps of a driver that dies when this one is its next."""

    def die(step: Step) -> Generator[Step, Any, Any]:
        if isinstance(step, kind):
            raise KilledError
        return (yield step)

    return altered(batch_steps(batch), die)


def overtaken_before(kind: type[Step], batch: int, other: Callable[[], object]) -> Steps:
    """The steps of a driver that sleeps before this one, until another driver has done what it does."""

    def sleep(step: Step) -> Generator[Step, Any, Any]:
        if isinstance(step, kind):
            other()
        return (yield step)

    return altered(batch_steps(batch), sleep)


@pytest.fixture
def options(broker: Broker, topic: Callable[[], str], tmp_path: Path) -> SinkOptions:
    name = topic()
    create_topic(broker.bootstrap_servers, name, 2)
    return SinkOptions(name, str(tmp_path / "decisions"), broker.bootstrap_servers, name, 0, frozenset(), None, {})


@pytest.fixture
def start(options: SinkOptions) -> Iterator[Callable[[], WritingRun]]:
    """Starts a driver of the query."""
    started: list[WritingRun] = []

    def start_one() -> WritingRun:
        started.append(WritingRun(options))
        return started[-1]

    yield start_one
    for each in started:
        each.close()


def written(options: SinkOptions) -> list[bytes]:
    with ControlClient(options.bootstrap_servers, {}) as client:
        await_markers(client, 60.0)
    return sorted(each.value or b"" for each in read_topic(options.bootstrap_servers, options.name))


def states(options: SinkOptions) -> list[BrokerState]:
    """Of every transactional id that the query has ever had."""
    with ControlClient(options.bootstrap_servers, {}) as client:
        found = client.list_transactions()
    return [state for name, state in found.items() if parse_transactional_id(options.name, name) is not None]


def open_of(options: SinkOptions) -> int:
    return states(options).count(BrokerState.ONGOING)


def test_batches_are_written_once_by_ids_that_are_used_again(
    options: SinkOptions, start: Callable[[], WritingRun]
) -> None:
    run = start()
    for number in range(4):
        run.batch(number)
    assert written(options) == everything(4)
    assert len(states(options)) == PARTITIONS


def test_what_was_written_before_a_decision_is_aborted_by_the_run_that_decides(
    options: SinkOptions, start: Callable[[], WritingRun]
) -> None:
    with pytest.raises(KilledError):
        start().batch(0, dying_before(Decide, 0))
    assert open_of(options) == PARTITIONS
    start().batch(0)
    assert written(options) == everything(1)
    assert open_of(options) == 0


def test_a_batch_that_was_decided_is_committed_by_the_next_run_and_not_written_again(
    options: SinkOptions, start: Callable[[], WritingRun]
) -> None:
    with pytest.raises(KilledError):
        start().batch(0, dying_before(End, 0))
    assert written(options) == []
    again = start()
    again.batch(0)
    assert (written(options), again.drained) == (everything(1), 1)
    assert len(states(options)) == PARTITIONS
    again.batch(1)
    assert written(options) == everything(2)


def test_a_batch_of_which_a_part_was_committed_is_finished_by_the_next_run(
    options: SinkOptions, start: Callable[[], WritingRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(point: CrashPoint, **_: Any) -> None:
        if point is CrashPoint.AFTER_END_TXN:
            raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(query_run, "reached", die)
        with pytest.raises(KilledError):
            start().batch(0)
    assert len(written(options)) == ROWS
    start().batch(0)
    assert written(options) == everything(1)


def test_a_batch_that_spark_begins_again_although_all_of_it_is_committed_is_written_once(
    options: SinkOptions, start: Callable[[], WritingRun]
) -> None:
    start().batch(0)
    start().batch(0)
    assert written(options) == everything(1)


def test_what_a_task_wrote_that_was_tried_again_is_aborted(
    options: SinkOptions, start: Callable[[], WritingRun]
) -> None:
    run = start()
    run.tries = 2
    run.batch(0)
    assert written(options) == everything(1)
    assert open_of(options) == 0


def test_a_driver_that_slept_before_its_decision_is_fenced_by_the_one_that_made_it(
    options: SinkOptions, start: Callable[[], WritingRun]
) -> None:
    steps = overtaken_before(Decide, 0, lambda: start().batch(0))
    with pytest.raises(Fenced, match="another driver of this query has decided batch 0"):
        start().batch(0, steps)
    assert written(options) == everything(1)
    assert open_of(options) == 0


def test_a_driver_that_slept_behind_its_decision_finds_its_batch_committed(
    options: SinkOptions, start: Callable[[], WritingRun]
) -> None:
    start().batch(0, overtaken_before(End, 0, lambda: start().batch(0)))
    assert written(options) == everything(1)


def test_a_decided_batch_whose_transactions_ran_into_their_time_out_is_written_again(
    options: SinkOptions, start: Callable[[], WritingRun]
) -> None:
    run = start()
    with pytest.raises(KilledError):
        run.batch(0, dying_before(End, 0))
    with ControlClient(options.bootstrap_servers, {}) as client:
        # As the broker does when a transaction has taken too long.
        name = next(each for each in client.list_transactions() if parse_transactional_id(options.name, each))
        found = client.describe_transaction(name)
        assert found is not None
        client.end_transaction(name, found.described.producer_id, found.described.producer_epoch, commit=False)
    start().batch(0)
    assert written(options) == everything(1)
    assert open_of(options) == 0


def test_a_batch_that_fails_leaves_nothing_open(options: SinkOptions, start: Callable[[], WritingRun]) -> None:
    run = start()
    task = run._task

    def failing(batch: int, partition: int) -> Committable:
        if partition == 1:
            raise ConfigurationError("the second task failed")
        return task(batch, partition)

    run._task = failing  # type: ignore[method-assign]
    with pytest.raises(ConfigurationError, match="the second task failed"):
        run.batch(0)
    assert states(options)
    assert open_of(options) == 0
    start().batch(0)
    assert written(options) == everything(1)


def test_a_writer_whose_transaction_nobody_committed_goes_on_under_another_id(
    options: SinkOptions, start: Callable[[], WritingRun]
) -> None:
    run = start()
    run.write(0)
    run.write(0)
    assert states(options) == [BrokerState.ONGOING] * 2 * PARTITIONS
    run.batch(0)
    assert written(options) == everything(1)
    assert open_of(options) == 0


def test_whoever_observes_a_run_hears_of_its_steps_in_their_order(
    options: SinkOptions, start: Callable[[], WritingRun]
) -> None:
    heard: list[str] = []

    class Heard(Observer):
        def carried_out(self, step: Step, answer: Any, seconds: float) -> None:
            heard.append(type(step).__name__)

        def committed(self, batch: int) -> None:
            heard.append(f"batch {batch}")

    run = start()
    run._observer = Heard()
    run.batch(0)
    assert heard == ["ReadDecisions", "Write", "ListOpen", "Decide", "Look", "End", "End", "Sweep", "batch 0"]


def test_the_decisions_of_another_query_are_refused(options: SinkOptions, start: Callable[[], WritingRun]) -> None:
    start().batch(0)
    with pytest.raises(ConfigurationError, match="are about the query q-1, and this one is q-2: was its checkpointLoc"):
        WritingRun(options, "q-2").batch(1)


def test_decisions_that_cannot_be_read_are_named(
    start: Callable[[], WritingRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise OSError("the store is away")

    run = start()
    monkeypatch.setattr(DecisionStore, "known", away)
    with pytest.raises(
        Unavailable, match=r"the decisions in .* can't be read \(the store is away\): see that decisions="
    ):
        run.batch(0)
