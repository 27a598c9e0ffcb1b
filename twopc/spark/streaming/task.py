"""The task of a sink on Spark: the rows of a partition go into one transaction, which is pre-committed.

A worker process serves one task at a time, and keeps its producer for the next: the same id is used again there, and
nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from twopc.arrow import to_column
from twopc.faults.points import CrashPoint, reached
from twopc.kafka.transactions.batch_writer import BatchWriter, BatchWriterConfig
from twopc.protocol.codec import to_json
from twopc.protocol.facts import Committable
from twopc.spark.streaming.arrow_columns import size_of
from twopc.spark.streaming.decision import WrittenBatch
from twopc.spark.streaming.rows import BatchRows, records_of

BATCH_ID, QUERY_ID = "streaming.sql.batchId", "sql.streaming.queryId"
"""The local properties in which Spark tells the batch, and the query's id; Spark documents neither.

That id stands in the checkpointLocation, and never changes.
"""

RESULT = "result"
RESULT_SCHEMA = f"{RESULT} string"
"""One row of a task: a `TaskResult`."""

_writers: list[BatchWriter] = []
"""That of this process, if it has one: of the run that it served last."""


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """The specification of a task: its batch, as far as it needs to know it."""

    config: BatchWriterConfig
    batch: int
    topic: str | None


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of a task: nothing where it had no rows. `size` is keys and values, in bytes.

    `attempt` counts Spark's attempts at the task, from 0.
    """

    partition: int
    attempt: int
    records: int
    size: int
    committable: Committable | None


def written_by(results: Iterable[TaskResult]) -> WrittenBatch:
    """Return what a batch's tasks have written together."""
    messages = sorted(results, key=lambda result: result.partition)
    return WrittenBatch(
        tuple(message.committable for message in messages if message.committable is not None),
        sum(message.records for message in messages),
        sum(message.size for message in messages),
        max((message.attempt + 1 for message in messages), default=1),
    )


def write_rows(arriving: Iterator[pa.RecordBatch], spec: TaskSpec, context: TaskContext) -> TaskResult:
    """Write the rows of a task, whose columns are as `as_records` or `as_record_batch` has them; pre-commit them.

    Where that fails, what was written is aborted: Spark is never told of it.
    """
    try:
        return _write_rows(filter(len, arriving), spec, context)
    except Exception:
        for writer in _writers:
            writer.give_up()
        raise


def _write_rows(arriving: Iterator[pa.RecordBatch], spec: TaskSpec, context: TaskContext) -> TaskResult:
    writer: BatchWriter | None = None
    partition, count, size = context.partitionId(), 0, 0
    for each in arriving:
        if writer is None:
            writer = _writer(spec.config)
            writer.begin(context.taskAttemptId())
        rows = BatchRows(spec.batch, partition, range(count, count + each.num_rows))
        columns = {name: to_column(column) for name, column in zip(each.schema.names, each.columns, strict=True)}
        for topic, batch in records_of(columns, spec.topic, rows):
            writer.write(topic, batch)
        count += each.num_rows
        size += size_of(each)
    committable = None
    if writer is not None:
        committable = writer.pre_commit(spec.batch, partition)
        reached(CrashPoint.AFTER_PRE_COMMIT, checkpoint=spec.batch, subtask=partition)
    return TaskResult(partition, context.attemptNumber(), count, size, committable)


def writing(spec: TaskSpec) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what `mapInArrow` runs in every task of a batch that is not decided."""

    def write(arriving: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        result = write_rows(arriving, spec, context)
        yield pa.RecordBatch.from_pydict({RESULT: [json.dumps(to_json(result))]})

    return write


def _writer(config: BatchWriterConfig) -> BatchWriter:
    """Return the writer of this process; whatever run it served before has no task here any more."""
    if not _writers or _writers[0].config != config:
        while _writers:
            _writers.pop().close()
        _writers.append(BatchWriter(config))
    return _writers[0]
