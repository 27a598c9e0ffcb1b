"""What a driver and the coordinator say to each other about an attempt, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass

from twopc.errors import ConfigurationError
from twopc.protocol.facts import CheckpointMetadata
from twopc.protocol.ids import AttemptId


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """When checkpoints are due, and how long one may take; milliseconds."""

    interval_ms: int
    timeout_ms: int
    min_pause_ms: int = 0

    def __post_init__(self) -> None:
        if self.interval_ms < 1 or self.timeout_ms < 1 or self.min_pause_ms < 0:
            raise ConfigurationError(
                "checkpoint_interval_ms and checkpoint_timeout_ms must be at least 1, checkpoint_min_pause_ms at least "
                f"0, but they are {self.interval_ms}, {self.timeout_ms} and {self.min_pause_ms}"
            )


@dataclass(frozen=True, slots=True)
class StartedAttempt:
    """The answer to the start of an attempt: what to settle, and what to restore.

    `latest` is the latest completed checkpoint (whose committables are to be settled), `restored` the one to restore,
    None to start afresh. `confirmed` names the committables of `latest` whose commit is already confirmed.
    `earlier_attempts` says whether this job ever ran before on this ledger.
    """

    attempt: AttemptId
    latest: CheckpointMetadata | None
    restored: CheckpointMetadata | None
    confirmed: frozenset[str]
    earlier_attempts: bool
