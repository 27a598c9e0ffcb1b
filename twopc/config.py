"""The settings of a run, as one frozen value that is checked when it is made.

Every setting can come from a keyword of `Job.run`, a command-line option, or the environment (`TWOPC_` and the name in
capitals); that order, first found wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from twopc.errors import ConfigurationError

NO_TIMEOUT_MS = 2_147_483_647
"""As a transaction time-out: never aborted for its age, where the broker's transaction.max.timeout.ms is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How to run a job. Durations are milliseconds.

    bootstrap_servers: host:port, comma-separated, of the Kafka brokers; a source or sink may name its own.
    checkpoint_dir: the folder that holds the checkpoints of all jobs, each under its name.
    parallelism: the number of subtasks.
    checkpoint_interval_ms, checkpoint_timeout_ms, checkpoint_min_pause_ms: as in Flink's execution.checkpointing.*.
    restore_from: "latest", "none", or a checkpoint (its id, or the path of its folder).
    until_end: read to the ends found at the start, take a last checkpoint, commit, exit.
    host: "spark", or "process" (each subtask a plain process on this machine, no JVM).
    master: Spark's master URL.
    coordinator: host:port of a coordinator to dial; None embeds one in the driver.
    transaction_timeout_ms: for Kafka transactions; None takes the longest that the broker allows.
    """

    bootstrap_servers: str = ""
    checkpoint_dir: str = "checkpoints"
    parallelism: int = 1
    checkpoint_interval_ms: int = 1_000
    checkpoint_timeout_ms: int = 60_000
    checkpoint_min_pause_ms: int = 0
    restore_from: str = "latest"
    until_end: bool = False
    host: str = "spark"
    master: str = "local[*]"
    coordinator: str | None = None
    transaction_timeout_ms: int | None = None
    restart_attempts: int = 10
    restart_delay_ms: int = 500
    restart_delay_max_ms: int = 30_000

    def __post_init__(self) -> None:
        for name in ("parallelism", "checkpoint_interval_ms", "checkpoint_timeout_ms", "restart_delay_ms"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} must be at least 1, but is {getattr(self, name)}")
        for name in ("checkpoint_min_pause_ms", "restart_attempts"):
            if getattr(self, name) < 0:
                raise ConfigurationError(f"{name} can't be negative, but is {getattr(self, name)}")
        if self.host not in ("spark", "process"):
            raise ConfigurationError(f"host must be 'spark' or 'process', but is {self.host!r}")
        if self.restart_delay_max_ms < self.restart_delay_ms:
            raise ConfigurationError("restart_delay_max_ms can't be smaller than restart_delay_ms")
        if not self.checkpoint_dir:
            raise ConfigurationError("checkpoint_dir is empty: name a folder for the checkpoints (--checkpoint-dir)")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> RunSettings:
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in body.items() if name in known})
