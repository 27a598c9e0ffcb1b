"""The strategies for restarts after a failure: Flink's, by their names; pure.

    exponential-delay   delays double from restart_delay_ms to restart_delay_max_ms (the default)
    fixed-delay         restart_delay_ms each time
    none                never

The first two give up after restart_attempts failures in a row; an attempt that ran well starts the row again.
"""

from __future__ import annotations

from dataclasses import dataclass

from twopc.config import RunSettings
from twopc.errors import TwoPhaseCommitError

STABLE_SECONDS = 60.0
"""An attempt that completed a checkpoint and ran this long puts the delay and the count back to their start."""


class PlannedRestart(TwoPhaseCommitError):
    """The attempt ends after a checkpoint, and another one goes on otherwise: no failure, and no delay."""


@dataclass(slots=True)
class RestartStrategy:
    """Counts failures in a row; every delay is `factor` times the one before, up to `delay_max_ms`."""

    attempts: int
    delay_ms: int
    delay_max_ms: int
    factor: int = 2
    used: int = 0

    @classmethod
    def of(cls, settings: RunSettings) -> RestartStrategy:
        """Return the strategy that the settings name."""
        attempts = 0 if settings.restart_strategy == "none" else settings.restart_attempts
        factor = 1 if settings.restart_strategy == "fixed-delay" else 2
        return cls(attempts, settings.restart_delay_ms, settings.restart_delay_max_ms, factor)

    def after_failure(self, *, ran_seconds: float, completed_checkpoint: bool) -> float | None:
        """Return how many seconds to wait before the next attempt, None to give up."""
        if completed_checkpoint and ran_seconds >= STABLE_SECONDS:
            self.used = 0
        if self.used >= self.attempts:
            return None
        delay: int = min(self.delay_ms * self.factor**self.used, self.delay_max_ms)
        self.used += 1
        return delay / 1000
