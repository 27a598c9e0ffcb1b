"""The health of a process: liveness for whoever starts it again, readiness for whoever sends it work."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from twopc.errors import TwoPhaseCommitError
from twopc.metrics.jobs import Describe
from twopc.protocol.job_description import JobDescription

OVERDUE_INTERVALS = 10
"""Of so many intervals without a completed checkpoint something is wrong."""

OVERDUE_LEAST_MS = 10_000
"""With short intervals, one slow checkpoint is not."""

SILENT = "the coordinator does not answer"


class Health(ABC):
    """Each returns what is wrong, "" where nothing is. Says nothing that only friends may know: anybody may ask."""

    @abstractmethod
    def live(self) -> str:
        """The reason why the process should be started again."""

    @abstractmethod
    def ready(self) -> str:
        """The reason why it does not do its work at this moment."""


class CoordinatorHealth(Health):
    """Of a coordinator that is a service: well if its one thread answers."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe

    def live(self) -> str:
        return "" if _answer(self._describe) is not None else SILENT

    def ready(self) -> str:
        return self.live()


class DriverHealth(Health):
    """Of the driver of one job: ready while all its subtasks are attached, and a checkpoint completes now and then.

    Alive whenever it answers: a new driver would not bring a coordinator or a broker back, and the job restarts by
    itself.
    """

    def __init__(self, describe: Describe, now: Callable[[], float] = time.time) -> None:
        self._describe = describe
        self._now = now

    def live(self) -> str:
        return ""

    def ready(self) -> str:
        jobs = _answer(self._describe)
        if jobs is None:
            return SILENT
        subtasks = [subtask for job in jobs for subtask in job.subtasks]
        attached = sum(subtask.attached for subtask in subtasks)
        if subtasks and attached == len(subtasks):
            return next(filter(None, (overdue(job, self._now()) for job in jobs)), "")
        return f"{attached} of {len(subtasks)} subtasks are attached" if subtasks else "no attempt has been started"


def overdue(job: JobDescription, now: float) -> str:
    """Say that no checkpoint has completed for `OVERDUE_INTERVALS` intervals, at this Unix time; "" if one has."""
    if job.settings is None:
        return ""
    last_ms = max([job.started_ms, *(kept.completed_ms for kept in job.kept[-1:])])
    allowed_ms = max(OVERDUE_INTERVALS * job.settings.interval_ms, OVERDUE_LEAST_MS)
    late_ms = now * 1000 - last_ms
    return "" if late_ms <= allowed_ms else f"no checkpoint has completed for {late_ms / 1000:.0f} s"


def _answer(describe: Describe) -> Sequence[JobDescription] | None:
    try:
        return describe()
    except TwoPhaseCommitError:
        return None
