"""What was asked for, and what became of a job's checkpoints, since the coordinator loaded it. Pure; lost at a restart.

For people, but for one thing: a request that is repeated, because its answer was lost, is known as the same.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from twopc.protocol.job_description import FailedCheckpoint

KEPT_FAILURES = 10
KEPT_REQUESTS = 2_000


@dataclass(slots=True)
class History:
    """Counters over all attempts, the last failures, and the ids of the last requests; oldest first."""

    completed: int = 0
    failed: int = 0
    failures: deque[FailedCheckpoint] = field(default_factory=lambda: deque(maxlen=KEPT_FAILURES))

    requests: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_REQUESTS))

    def note(self, failure: FailedCheckpoint) -> None:
        self.failed += 1
        self.failures.append(failure)
