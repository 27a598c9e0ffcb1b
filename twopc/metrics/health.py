"""The health of a process: liveness for whoever starts it again, readiness for whoever sends it work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from twopc.errors import TwoPhaseCommitError
from twopc.metrics.jobs import Describe
from twopc.protocol.job_description import JobDescription

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
    """Of the driver of one job: ready while all its subtasks are attached.

    Alive whenever it answers: a new driver would not bring a coordinator or a broker back, and the job restarts by
    itself.
    """

    def __init__(self, describe: Describe) -> None:
        self._describe = describe

    def live(self) -> str:
        return ""

    def ready(self) -> str:
        jobs = _answer(self._describe)
        if jobs is None:
            return SILENT
        subtasks = [subtask for job in jobs for subtask in job.subtasks]
        attached = sum(subtask.attached for subtask in subtasks)
        if subtasks and attached == len(subtasks):
            return ""
        return f"{attached} of {len(subtasks)} subtasks are attached" if subtasks else "no attempt has been started"


def _answer(describe: Describe) -> Sequence[JobDescription] | None:
    try:
        return describe()
    except TwoPhaseCommitError:
        return None
