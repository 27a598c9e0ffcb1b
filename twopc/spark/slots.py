"""The slots that a barrier stage waits for before it starts: one for each of its tasks, all at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from twopc.spark.master import STANDALONE, is_local

LOST_SECONDS = 30.0
"""How long a standalone application that had executors has none, before another session is worth its start.

Spark never registers an application again with a master that was restarted without a recovery mode.
"""


class Spare(NamedTuple):
    """What runs nothing: free slots, and the addresses of executors, with the driver's. `beside_others`: tasks run."""

    slots: int
    executors: frozenset[str]
    beside_others: bool


class SlotWatch:
    """Watches the slots of one session; `lost` is whether its application will not get any more."""

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        master = str(self._context.master)
        self._local, self._standalone = is_local(master), master.startswith(STANDALONE)
        self._had_executors = False
        self._none_since: float | None = None
        self.lost = False

    def shortage(self, group: str, needed: int, now: float) -> str | None:
        """Return what the stage of this job group waits for, for a user to read; None where nothing is missing."""
        context = self._context._jsc.sc()
        # A local scheduler logs a warning at each such question, and has none.
        executors = 0 if self._local else int(context.getExecutorIds().size())
        self._note(executors, now)
        # First all, then our own: what starts between the two is never taken for somebody else's.
        tasks = int(context.taskScheduler().rootPool().runningTasks())
        own = self._running(group)
        if own > 0:
            return None
        slots = self._most()
        if needed <= slots - tasks:
            return None
        if needed <= slots:
            return (
                f"waiting for {needed} task slots: Spark has {slots}, but other tasks of this application have {tasks} "
                "of them: let those end, or give it more slots"
            )
        return (
            f"waiting for {needed} task slots, Spark has {slots} ({executors} executors under {self._context.master}): "
            "free cores there, add workers, or use a smaller --parallelism"
        )

    def refusal(self, needed: int) -> str | None:
        """Say why a stage of so many subtasks can't run; None where there are slots for it, taken or free."""
        master = str(self._context.master)
        slots = self._context.defaultParallelism if is_local(master) else self._most()
        if needed <= slots:
            return None
        remedy = f"use --master 'local[{needed}]'" if is_local(master) else "add workers"
        return (
            f"parallelism {needed} needs as many task slots, but master {master!r} has {slots}: {remedy} or a smaller "
            "--parallelism"
        )

    def spare(self) -> Spare:
        """Return what is spare now."""
        executors = list(self._context._jsc.sc().statusTracker().getExecutorInfos())
        tasks = sum(int(each.numRunningTasks()) for each in executors)
        idle = frozenset(f"{each.host()}:{each.port()}" for each in executors if each.numRunningTasks() == 0)
        return Spare(max(0, self._most() - tasks), idle, tasks > 0)

    def _most(self) -> int:
        context = self._context._jsc.sc()
        return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))

    def _running(self, group: str) -> int:
        """Count the tasks that hold a slot for this job group, as the scheduler itself knows it."""
        pool = self._context._jsc.sc().taskScheduler().rootPool()
        return sum(int(tasks.runningTasks()) for tasks in _task_sets(pool) if _group_of(tasks) == group)

    def _note(self, executors: int, now: float) -> None:
        if executors > 0:
            self._had_executors, self._none_since = True, None
        elif self._had_executors and self._standalone:
            self._none_since = self._none_since or now
            self.lost = now - self._none_since >= LOST_SECONDS


def _task_sets(pool: Any) -> Iterator[Any]:
    """Yield the stages below a pool of the scheduler; with FAIR scheduling pools have pools."""
    for member in pool.schedulableQueue().toArray():
        if member.getClass().getSimpleName() == "Pool":
            yield from _task_sets(member)
        else:
            yield member


def _group_of(task_set: Any) -> str | None:
    properties = task_set.taskSet().properties()
    return None if properties is None else properties.getProperty("spark.jobGroup.id")
