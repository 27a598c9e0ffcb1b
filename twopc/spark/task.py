"""The function that runs in the executor: one barrier task, one subtask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
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
    job: JobText | PickledJob, specs: list[dict[str, Any]], *, folder: Path | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what `mapInArrow` runs in every task; the job is loaded there, in the folder where that exists."""

    def host(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        end_with_parent()
        end_forked_with_this()
        index = BarrierTaskContext.get().partitionId()
        spec = from_json(SubtaskSpec, specs[index])
        log_output = output_of_subtask(spec.subtask, spec.settings.log_level, spec.settings.log_format)
        # Left afterwards, wherever the job has gone from there: the worker serves others.
        with log_output, chdir(folder if folder is not None and folder.is_dir() else Path.cwd()):
            run_subtask(job.load, spec)
        yield pa.RecordBatch.from_pydict({"subtask": [index]})

    return host
