"""The function that runs in the executor: one barrier task, one subtask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark import BarrierTaskContext

from twopc.loader.job_loader import JobText
from twopc.logs import output_of_subtask
from twopc.protocol.codec import from_json
from twopc.runtime.spec import SubtaskSpec
from twopc.spark.pickled_job import PickledJob
from twopc.worker.bootstrap import run_subtask
from twopc.worker.parent_watchdog import end_forked_with_this, end_with_parent

RESULT_SCHEMA = "subtask long"


def host_function(
    job: JobText | PickledJob, specs: list[dict[str, Any]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what `mapInArrow` runs in every task; the job is loaded there."""

    def host(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        end_with_parent()
        end_forked_with_this()
        index = BarrierTaskContext.get().partitionId()
        spec = from_json(SubtaskSpec, specs[index])
        with output_of_subtask(spec.subtask, spec.settings.log_level, spec.settings.log_format):
            run_subtask(job.load, spec)
        yield pa.RecordBatch.from_pydict({"subtask": [index]})

    return host
