"""The plan of a fault drill, as a value that is checked when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twopc.drill.load import Load
from twopc.errors import ConfigurationError

PARALLELISM = 2


@dataclass(frozen=True, slots=True)
class FaultDrillPlan:
    """The plan: a job file, how many faults, the seed that they are drawn from, and what the job reads.

    `access` are client settings with which the drill gets at the brokers, where those of the job's sink don't do.
    `max_recovery_seconds` is how long the job may take to recover from a fault.
    """

    job_file: str
    faults: int
    seed: int
    load: Load = Load()  # noqa: RUF009 - a frozen value
    parallelism: int = PARALLELISM
    scratch_dir: Path | None = None
    access: Mapping[str, Any] = field(default_factory=dict, repr=False)
    max_recovery_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.faults < 1:
            raise ConfigurationError(f"--faults must be at least 1, but is {self.faults}")
        if self.parallelism < 1:
            raise ConfigurationError(f"--parallelism must be at least 1, but is {self.parallelism}")
