"""The messages of a driver and the coordinator about an attempt, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twopc.errors import ConfigurationError
from twopc.protocol.facts import CheckpointMetadata, Committable
from twopc.protocol.ids import NO_ATTEMPT, AttemptId, CheckpointId
from twopc.protocol.planned_starts import StartsPlanned

MOST_CONCURRENT = 10
"""A subtask has two dozen transactional producers at most, and each checkpoint in flight may hold two of them."""


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """When checkpoints are due, how long one may take (milliseconds), how many may be in flight, fail, and are kept."""

    interval_ms: int
    timeout_ms: int
    min_pause_ms: int = 0
    max_concurrent: int = 1
    tolerable_failures: int = 3
    retained: int = 3

    def __post_init__(self) -> None:
        if self.interval_ms < 1 or self.timeout_ms < 1 or self.min_pause_ms < 0:
            raise ConfigurationError(
                "checkpoint_interval_ms and checkpoint_timeout_ms must be at least 1, checkpoint_min_pause_ms at least "
                f"0, but they are {self.interval_ms}, {self.timeout_ms} and {self.min_pause_ms}"
            )
        if not 1 <= self.max_concurrent <= MOST_CONCURRENT:
            raise ConfigurationError(
                f"checkpoint_max_concurrent must be 1 to {MOST_CONCURRENT}, but is {self.max_concurrent}"
            )
        if self.retained < 1 or self.tolerable_failures < 0:
            raise ConfigurationError(
                "checkpoints_retained must be at least 1, checkpoint_tolerable_failures at least 0, but they are "
                f"{self.retained} and {self.tolerable_failures}"
            )

    @property
    def concurrent(self) -> int:
        """The number of checkpoints that may be in flight: one where there is a pause after each (Flink's rule)."""
        return 1 if self.min_pause_ms else self.max_concurrent


@dataclass(frozen=True, slots=True)
class Traces:
    """The traces of a job's attempts where its output goes, whatever a ledger knows of them: attempts, 0 for none.

    `claimed` is the greatest that has claimed the output, though it may have been refused then; `written` the greatest
    that has prepared to write; `open` the greatest that has output open, and may be running at this moment.
    """

    claimed: AttemptId = NO_ATTEMPT
    written: AttemptId = NO_ATTEMPT
    open: AttemptId = NO_ATTEMPT

    @property
    def newest(self) -> AttemptId:
        return max(self.claimed, self.written, self.open)


NO_TRACES = Traces()


@dataclass(frozen=True, slots=True)
class GlobalCommit:
    """The committables of one completed checkpoint for global committers, of all subtasks, the oldest first."""

    checkpoint_id: CheckpointId
    by_group: Mapping[str, tuple[Committable, ...]]
    """The committables by their transaction group."""

    @classmethod
    def of(cls, checkpoint_id: CheckpointId, committables: Sequence[Committable]) -> GlobalCommit:
        groups = dict.fromkeys(item.group for item in committables)
        return cls(checkpoint_id, {group: tuple(it for it in committables if it.group == group) for group in groups})

    @property
    def committables(self) -> tuple[Committable, ...]:
        return tuple(item for items in self.by_group.values() for item in items)


@dataclass(frozen=True, slots=True)
class StartedAttempt:
    """The answer to the start of an attempt: what to settle, and what to restore.

    `latest` is the latest completed checkpoint (whose committables are to be settled), `restored` the one to restore,
    None to start afresh. `confirmed` names the committables of `latest` whose commit is already confirmed.
    `earlier_attempts` says whether this job ever ran before on this ledger. `lost` names those of `latest` whose loss
    was settled before: where subtasks were healed, `restored` has their snapshots of earlier checkpoints already.
    `earlier` holds the other completed checkpoints that are kept, while something of `latest` is outstanding.
    `planned` says where an earlier attempt began to read, where there is nothing to restore since none has completed.
    """

    attempt: AttemptId
    latest: CheckpointMetadata | None
    restored: CheckpointMetadata | None
    confirmed: frozenset[str]
    earlier_attempts: bool
    lost: frozenset[str] = frozenset()
    earlier: tuple[CheckpointMetadata, ...] = ()
    planned: StartsPlanned | None = None
