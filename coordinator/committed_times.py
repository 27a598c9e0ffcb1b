"""The stream times of the latest checkpoint that is committed everywhere. Pure.

Invariant: no trigger brings a time before all that was made of earlier records is committed. Whoever is told a time
may let it pass behind what the job has written until then, and nothing of an earlier time is written there again.
"""

from __future__ import annotations

from collections import deque

from twopc.protocol.followed_times import JobTimes
from twopc.protocol.ids import CheckpointId


class CommittedTimes:
    """Those of one attempt; a new coordinator knows none."""

    def __init__(self) -> None:
        self._latest = JobTimes()
        self._completed: deque[tuple[CheckpointId, JobTimes]] = deque()

    def completed(self, checkpoint_id: CheckpointId, times: JobTimes) -> None:
        """This checkpoint has completed, and all subtasks told these times with it."""
        self._completed.append((checkpoint_id, times))

    def through(self, committed: CheckpointId) -> JobTimes:
        """Return the times of the latest of the checkpoints up to this one, which are committed everywhere."""
        while self._completed and self._completed[0][0] <= committed:
            self._latest = self._completed.popleft()[1]
        return self._latest
