"""The tasks of a batch that the driver has as a DataFrame, as `foreachBatch` gives it: begun by us, when it is time."""

from __future__ import annotations

import json
import logging
from typing import assert_never

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from twopc.errors import TwoPhaseCommitError
from twopc.protocol.codec import from_json
from twopc.spark.failure_reason import reason_of
from twopc.spark.streaming.decision import WrittenBatch
from twopc.spark.streaming.rows import as_records
from twopc.spark.streaming.steps import Drain, Write
from twopc.spark.streaming.task import RESULT, RESULT_SCHEMA, TaskResult, TaskSpec, writing, written_by

log = logging.getLogger(__name__)

_IS_IT_THERE = "where tasks run, Python is what PYSPARK_PYTHON names: is twopc-streams installed there?"


class FrameTasks:
    """Called with what the tasks are to do with the batch."""

    def __init__(self, frame: DataFrame, spec: TaskSpec) -> None:
        self._frame = frame
        self._spec = spec

    def __call__(self, step: Write | Drain) -> WrittenBatch | None:
        match step:
            case Write():
                return self._write()
            case Drain():
                self._frame.write.format("noop").mode("overwrite").save()
                return None
            case _:
                assert_never(step)

    def _write(self) -> WrittenBatch:
        batch = self._spec.batch
        records = as_records(self._frame, self._spec.topic)
        try:
            rows = records.mapInArrow(writing(self._spec), RESULT_SCHEMA).collect()
        except (PySparkException, Py4JError) as error:
            reason = reason_of(error)
            asked = f" ({_IS_IT_THERE})" if "No module named" in reason else ""
            raise TwoPhaseCommitError(f"batch {batch} could not be written. {reason}{asked}") from error
        written = written_by(from_json(TaskResult, json.loads(row[RESULT])) for row in rows)
        log.info("batch %d: %d records in %d transactions", batch, written.records, len(written.transactions))
        return written
