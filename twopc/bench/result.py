"""The result of a benchmark, as data: written as JSON, read back to compare with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from twopc.errors import ConfigurationError

FORMAT = 2

Point = Sequence[float]
"""Seconds since the start of the run, and a value."""


@dataclass(frozen=True, slots=True)
class SinkRate:
    """The records of a topic that became visible, and how many a second in steady state; by the sinks that write it."""

    visible: int
    records_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchResult:
    """One run. A figure that could not be measured is None.

    records_per_s: in steady state, between the tenth and the ninetieth percent of the output (throughput runs only).
    cpu_s_per_million: CPU seconds a million records over the same part of the run, of driver, JVM and workers together,
        brokers, load and reader not counted; `_whole` over the whole run, start-up included.
    startup_s: from the start of the run to its first record.
    checkpoint_ms, pause_ms, latency_ms: p50, p99 and greatest, by name; pause is how long a data loop stood still at a
        checkpoint, latency is from a record's being due to its being seen by a `read_committed` reader.
    memory_mb: the greatest sum of resident sets; worker_mb: the greatest of one Python process of the run.
    sources: how many records each source read; sinks: what came of each output topic, by the sinks that write to it
        (throughput runs only).
    written: how many records the job wrote; visible: how many of them a `read_committed` reader saw.
    """

    job: str
    records: int
    written: int
    visible: int
    records_per_s: float | None
    sources: Mapping[str, int]
    sinks: Mapping[str, SinkRate]
    cpu_s_per_million: float | None
    cpu_s_per_million_whole: float
    startup_s: float | None
    seconds: float
    checkpoints: int
    checkpoints_aborted: int
    restarts: int
    checkpoint_ms: Mapping[str, float]
    pause_ms: Mapping[str, float]
    latency_ms: Mapping[str, float]
    memory_mb: float
    worker_mb: float
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    rates: Sequence[Point]
    checkpoint_series: Sequence[Point]
    pauses: Sequence[float]
    latencies: Sequence[float]
    memory_series: Sequence[Point]

    @property
    def exact(self) -> bool:
        """Whether as many records became visible as the job says that it wrote."""
        return self.visible == self.written

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def read(cls, path: Path) -> BenchResult:
        """Read what `write` wrote; raise ConfigurationError for anything else."""
        try:
            body = json.loads(path.read_text("utf-8"))
            if not isinstance(body, dict):
                raise ValueError("it is not a JSON object")
            if body.get("format") != FORMAT:
                raise ValueError(f"its format is {body.get('format')!r}, not {FORMAT}")
            sinks = {name: SinkRate(**rate) for name, rate in body["sinks"].items()}
            return cls(**{field.name: body[field.name] for field in fields(cls)} | {"sinks": sinks})
        except OSError as error:
            raise ConfigurationError(f"{path} can't be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{path} is not a result of twopc bench: {error}") from error

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(self.to_json(), indent=1) + "\n", "utf-8")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure against an earlier one; `better` is None where they are the same or can't be compared."""

    name: str
    now: float
    before: float
    better: bool | None

    @property
    def ratio(self) -> float:
        return self.now / self.before if self.before else float("inf")


def compare(now: BenchResult, before: BenchResult) -> list[Comparison]:
    """Return the figures that both have."""
    pairs = [
        ("records/s", now.records_per_s, before.records_per_s, True),
        ("CPU s a million", now.cpu_s_per_million, before.cpu_s_per_million, False),
        ("pause p50, ms", now.pause_ms.get("p50"), before.pause_ms.get("p50"), False),
        ("pause p99, ms", now.pause_ms.get("p99"), before.pause_ms.get("p99"), False),
        ("checkpoint p50, ms", now.checkpoint_ms.get("p50"), before.checkpoint_ms.get("p50"), False),
        ("latency p50, ms", now.latency_ms.get("p50"), before.latency_ms.get("p50"), False),
        ("latency p99, ms", now.latency_ms.get("p99"), before.latency_ms.get("p99"), False),
        ("memory, MB", now.memory_mb, before.memory_mb, False),
    ]
    return [
        Comparison(name, new, old, None if new == old else (new > old) is more)
        for name, new, old, more in pairs
        if new is not None and old is not None
    ]


def differing(now: BenchResult, before: BenchResult) -> dict[str, str]:
    """Return what was not the same in both runs, so that their figures say less: name and both values."""
    pairs = {"job": (now.job, before.job)}
    for mine, theirs in ((now.settings, before.settings), (now.versions, before.versions)):
        pairs |= {name: (mine.get(name), theirs.get(name)) for name in (*mine, *theirs)}
    return {name: f"{new} against {old}" for name, (new, old) in pairs.items() if new != old}
