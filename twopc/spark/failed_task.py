"""The task that failed and its place: Spark's account of a barrier stage names neither the executor nor its host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

LISTENERS_MS = 1_000
"""How long what has happened may be on its way to those that Spark tells of it."""

FIRST_TRY, TASKS_MAX = 0, 10_000


def place_of_failure(context: SparkContext, group: str) -> str | None:
    """Return the executor whose task of a job group failed, and its host; None where Spark does not tell, or has none.

    The tasks that Spark ended because of that one have no error of their own.
    """
    try:
        for task in _tasks(context, group):
            if str(task.status()) == "FAILED" and task.errorMessage().isDefined():
                return None if task.executorId() == "driver" else f"executor {task.executorId()} on {task.host()}"
    except (Py4JError, OSError):
        return None
    return None


def _tasks(context: SparkContext, group: str) -> Iterator[Any]:
    spark, tracker = context._jsc.sc(), context.statusTracker()
    spark.listenerBus().waitUntilEmpty(LISTENERS_MS)
    for job in filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(group))):
        for stage in job.stageIds:
            tasks = spark.statusStore().taskList(stage, FIRST_TRY, TASKS_MAX)
            yield from map(tasks.apply, range(tasks.size()))
