"""Works out what a run's samples mean. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from twopc.bench.recorder import Recorder, percentile
from twopc.bench.usage import Usage, cpu_at

FIRST, LAST = 0.1, 0.9
"""The part of a run that counts as steady."""


def steady_rate(stamps_ms: list[int]) -> float | None:
    """Return records a second between the tenth and the ninetieth percent of these append times."""
    ordered = sorted(stamps_ms)
    if not ordered:
        return None
    first, last = ordered[int(len(ordered) * FIRST)], ordered[int(len(ordered) * LAST) - 1]
    return None if last <= first else len(ordered) * (LAST - FIRST) * 1000 / (last - first)


def steady_cpu(recorder: Recorder, samples: list[Usage], records: int) -> float | None:
    """Return CPU seconds a million records over the steady part of the reading; None if it was too short to tell.

    Of a job that reads what it writes itself, the part counts that the whole reading has, not only that of the input.
    """
    read = max(records, recorder.records)
    first, last = recorder.moment(read * FIRST), recorder.moment(read * LAST)
    if first is None or last is None or last - first < 1.0:
        return None
    return (cpu_at(samples, last) - cpu_at(samples, first)) / (records * (LAST - FIRST)) * 1e6


def summary(values: list[float]) -> Mapping[str, float]:
    """Return p50, p99 and the greatest; nothing for no values."""
    p50, p99 = percentile(values, 0.5), percentile(values, 0.99)
    return {} if p50 is None or p99 is None else {"p50": p50, "p99": p99, "max": max(values)}
