"""What became of a job's checkpoints since the coordinator loaded it: for people. Pure; lost at a restart."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from twopc.protocol.job_description import FailedCheckpoint

KEPT_FAILURES = 10


@dataclass(slots=True)
class History:
    """Counters over all attempts, and the last failures, oldest first."""

    completed: int = 0
    failed: int = 0
    failures: deque[FailedCheckpoint] = field(default_factory=lambda: deque(maxlen=KEPT_FAILURES))

    def note(self, failure: FailedCheckpoint) -> None:
        self.failed += 1
        self.failures.append(failure)
