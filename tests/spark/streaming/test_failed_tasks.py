"""What a task that fails leaves behind, by a writer in this process, at a real broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark import TaskContext

from twopc.errors import UserCodeError
from twopc.kafka.clients.control_client import ControlClient
from twopc.kafka.clients.described_transaction import BrokerState
from twopc.spark.streaming import task
from twopc.spark.streaming.options import SinkOptions
from twopc.spark.streaming.query_run import claimed
from twopc.spark.streaming.task import TaskResult, TaskSpec, write_rows
from twopc.testing.broker import Broker
from twopc.testing.topics import create_topic

pytestmark = pytest.mark.broker


@pytest.fixture
def spec(broker: Broker, topic: Callable[[], str], tmp_path: Path) -> Iterator[TaskSpec]:
    name = topic()
    create_topic(broker.bootstrap_servers, name, 1)
    options = SinkOptions(name, str(tmp_path), broker.bootstrap_servers, None, 0, frozenset(), None, {})
    yield TaskSpec(claimed(options), 0, None)
    while task._writers:
        task._writers.pop().close()


def rows(topic: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": [b"1"], "topic": pa.array([topic], pa.string())})


def run(spec: TaskSpec, number: int, arriving: Iterator[pa.RecordBatch]) -> TaskResult:
    """Run the task with this number."""
    context: Any = SimpleNamespace(partitionId=lambda: number, taskAttemptId=lambda: number, attemptNumber=lambda: 0)
    return write_rows(arriving, spec, cast(TaskContext, context))


def open_of(spec: TaskSpec) -> set[str]:
    """Return the ids of what nobody has begun to end."""
    with ControlClient(spec.config.bootstrap_servers, {}) as client:
        states = client.list_transactions()
    return {
        each for each, state in states.items() if state is BrokerState.ONGOING and each.startswith(spec.config.prefix)
    }


def test_a_task_that_fails_leaves_nothing_open(spec: TaskSpec) -> None:
    with pytest.raises(UserCodeError, match="says no topic"):
        run(spec, 0, iter([rows(spec.config.prefix), rows(None)]))
    assert open_of(spec) == set()
    assert run(spec, 1, iter([rows(spec.config.prefix)])).committable is not None


def test_what_another_task_has_pre_committed_is_left_alone_by_one_that_fails_before_it_begins(spec: TaskSpec) -> None:
    def failing() -> pa.RecordBatch:
        raise UserCodeError("the source has failed")

    assert run(spec, 0, iter([rows(spec.config.prefix)])).committable is not None
    before = open_of(spec)
    with pytest.raises(UserCodeError, match="the source has failed"):
        run(spec, 1, iter(failing, None))
    assert open_of(spec) == before != set()
