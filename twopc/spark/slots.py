"""What a barrier stage waits for before it starts: a slot for each of its tasks, all at once."""

from __future__ import annotations

from pyspark.sql import SparkSession

LOST_SECONDS = 30.0
"""How long a standalone application that had executors has none, before another session is worth its start.

Spark never registers an application again with a master that was restarted without a recovery mode.
"""


class SlotWatch:
    """Watches the slots of one session; `lost` is whether its application will not get any more."""

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        self._standalone = str(self._context.master).startswith("spark://")
        self._had_executors = False
        self._none_since: float | None = None
        self.lost = False

    def shortage(self, group: str, needed: int, now: float) -> str | None:
        """Return what the stage of this job group waits for, for a user to read; None where nothing is missing."""
        context = self._context._jsc.sc()
        executors = int(context.getExecutorIds().size())
        self._note(executors, now)
        if self._runs(group):
            return None
        slots = int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))
        if slots >= needed:
            return None
        return (
            f"waiting for {needed} task slots, Spark has {slots} ({executors} executors under {self._context.master}): "
            "free cores there, add workers, or use a smaller --parallelism"
        )

    def _runs(self, group: str) -> bool:
        tracker = self._context.statusTracker()
        jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)))
        stages = (tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds)
        return any(stage is not None and stage.numActiveTasks > 0 for stage in stages)

    def _note(self, executors: int, now: float) -> None:
        if executors > 0:
            self._had_executors, self._none_since = True, None
        elif self._had_executors and self._standalone:
            self._none_since = self._none_since or now
            self.lost = now - self._none_since >= LOST_SECONDS
