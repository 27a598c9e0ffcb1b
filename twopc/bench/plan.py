"""The plan of a benchmark, as a value that is checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from twopc.errors import ConfigurationError

MIN_RECORDS = 1_000
"""Fewer end before anything can be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlan:
    """One benchmark of one job.

    job_file: the job, as `twopc run` takes it. Its topics are not touched: input and output are topics of the bench.
    records, record_bytes, keys, partitions: the load; `keys` distinct keys, 0 for records without a key.
    rate: records a second that are produced while the job runs, which measures latency; None produces all of them
        before it starts, which measures throughput.
    sample: a file whose lines are the values, again and again; None generates values of about `record_bytes`.
    """

    job_file: str
    records: int = 1_000_000
    record_bytes: int = 100
    keys: int = 1_000
    partitions: int = 4
    rate: int | None = None
    sample: Path | None = None

    def __post_init__(self) -> None:
        if self.records < MIN_RECORDS:
            raise ConfigurationError(f"--records must be at least {MIN_RECORDS}, but is {self.records}")
        if self.record_bytes < 1 or self.partitions < 1 or self.keys < 0:
            raise ConfigurationError(
                "--record-bytes and --partitions must be at least 1, --keys at least 0, but they are "
                f"{self.record_bytes}, {self.partitions} and {self.keys}"
            )
        if self.rate is not None and self.rate < 1:
            raise ConfigurationError(f"--rate must be at least 1 record a second, but is {self.rate}")
