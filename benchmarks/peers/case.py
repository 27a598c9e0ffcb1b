"""The case of a run, as a value: which job, on how many records of which kind, how wide, how often it commits."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One job on one input.

    job: a name in `workloads.WORKLOADS`. width: subtasks, threads, workers or processes, as the system calls them.
    """

    job: str = "upper"
    records: int = 1_000_000
    partitions: int = 4
    keys: int = 1_000
    value_bytes: int = 100
    width: int = 1
    interval_ms: int = 1_000

    @property
    def input_topic(self) -> str:
        """Where the input is: one topic for all cases that read the same records."""
        from peers.workloads import WORKLOADS

        form = WORKLOADS[self.job].form
        return f"{form}-{self.records}-{self.partitions}-{self.keys}-{self.value_bytes}"

    def label(self) -> str:
        """Say what differs from the usual case."""
        usual = asdict(Case())
        parts = [f"{name} {value:,}" for name, value in asdict(self).items() if name != "job" and usual[name] != value]
        return ", ".join([self.job, *parts])
