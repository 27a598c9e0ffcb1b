"""`writeStream.format("twopc-kafka")`: what Spark calls in its tasks, and in a Python beside the driver's JVM.

Spark makes a writer in one process, which sends it to the tasks, and asks another one to commit or abort what they have
written. Both serve batch after batch, and may be replaced by new ones in between: what they remember only saves work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from twopc.config import require_assertions
from twopc.errors import ConfigurationError
from twopc.kafka.transactions.batch_writer import BatchWriterConfig
from twopc.protocol.facts import Committable
from twopc.protocol.ids import AttemptId
from twopc.spark.streaming.arrow_columns import as_record_batch
from twopc.spark.streaming.options import SinkOptions
from twopc.spark.streaming.query_run import QueryRun, claimed
from twopc.spark.streaming.rows import record_columns
from twopc.spark.streaming.steps import Drain, Write, commit_steps, given_up
from twopc.spark.streaming.task import BATCH_ID, QUERY_ID, TaskResult, TaskSpec, write_rows, written_by

_claims: dict[str, tuple[SinkOptions, BatchWriterConfig]] = {}
"""The runs of this process by the names of their sinks."""

_runs: dict[str, QueryRun] = {}
"""Those that have committed a batch in this process."""


@dataclass(frozen=True, slots=True)
class TaskMessage(WriterCommitMessage):
    """The message that a task has Spark bring to the process that commits."""

    query: str
    run: AttemptId
    timeout_ms: int
    result: TaskResult

    @property
    def transactions(self) -> tuple[Committable, ...]:
        return () if self.result.committable is None else (self.result.committable,)


class KafkaStreamWriter(DataSourceStreamArrowWriter):
    """A query's rows, with the guarantee of `kafka_sink`."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        """Raise ConfigurationError for columns that can't be written."""
        require_assertions()
        record_columns(schema, options.topic)
        self._options = options
        self._config: BatchWriterConfig | None = None

    def __getstate__(self) -> Mapping[str, Any]:
        # It is pickled only where it is sent to tasks: they need a run, of which who commits has no need.
        return {"_options": self._options, "_config": self._config or _claim_of(self._options)}

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write the rows of a task, and pre-commit them."""
        context = TaskContext.get()
        assert context is not None, "called outside of a task"
        assert self._config is not None, "what is sent to tasks has a run"
        spec = TaskSpec(self._config, int(_task_property(context, BATCH_ID)), self._options.topic)
        result = write_rows(map(as_record_batch, iterator), spec, context)
        return TaskMessage(_task_property(context, QUERY_ID), self._config.run, self._config.timeout_ms, result)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  Spark's name
        """Decide that what the tasks wrote is the batch's output, and commit it; or finish what was decided before."""
        known = [message for message in messages if isinstance(message, TaskMessage)]
        assert len(known) == len(messages), "Spark commits a batch when all of its tasks have told what they did"
        run = self._run_of(known[0], batchId)
        written = written_by(each.result for each in known)
        try:
            run.do(
                batchId,
                commit_steps(batchId, written, self._options.first_batch, self._options.accept_loss),
                _is_computed,
            )
        except BaseException:
            run.close()
            raise
        _runs[self._options.name] = run

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  Spark's name
        """Abort what no decision names, nor ever will. Spark calls this after a commit that failed, too."""
        parts = [message if isinstance(message, TaskMessage) else None for message in messages]
        transactions = given_up([None if part is None else part.transactions for part in parts])
        if transactions:
            some = next(filter(None, parts))
            with QueryRun(self._options, some.query, self._config_of(some)) as run:
                run.abort(transactions)

    def _run_of(self, message: TaskMessage, batch: int) -> QueryRun:
        """Return the run that a batch belongs to: that of the batch before, where this process has committed it."""
        run, config = _runs.pop(self._options.name, None), self._config_of(message)
        if run is not None and (run.query, run.next_batch, run.config) == (message.query, batch, config):
            return run
        if run is not None:
            run.close()
        return QueryRun(self._options, message.query, config)

    def _config_of(self, message: TaskMessage) -> BatchWriterConfig:
        return self._options.writer_config(message.run, message.timeout_ms)


def _claim_of(options: SinkOptions) -> BatchWriterConfig:
    """Return what the tasks of this process's run need; it has a number of its own."""
    known = _claims.get(options.name)
    if known is None or known[0] != options:
        known = _claims[options.name] = (options, claimed(options))
    return known[1]


def _task_property(context: TaskContext, name: str) -> str:
    value = context.getLocalProperty(name)
    if not value:
        raise ConfigurationError(
            f"Spark does not tell its tasks {name!r}: this version can't have the sink twopc-kafka; use "
            "writeStream.foreachBatch(twopc.spark.streaming.kafka_sink(...))"
        )
    return value


def _is_computed(step: Write | Drain) -> NoReturn:
    raise AssertionError(f"the tasks of a batch have run, and can't be begun for {step}")
