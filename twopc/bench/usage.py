"""CPU and memory of this process and all its descendants, sampled beside a run."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import psutil

SAMPLE_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Usage:
    """At one moment, in Unix seconds: CPU seconds so far, and bytes of memory, of all and of the largest worker."""

    at: float
    cpu_seconds: float
    resident_bytes: int
    largest_child_bytes: int


class UsageSampler:
    """Samples while entered, from zero; `samples` grows. What processes used that have ended since stays in."""

    def __init__(self, excluded: frozenset[int] = frozenset()) -> None:
        self.samples: list[Usage] = []
        self._excluded = excluded
        self._cpu_of: dict[tuple[int, float], float] = {}
        self._before = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="twopc-bench-usage", daemon=True)

    def __enter__(self) -> UsageSampler:
        own = psutil.Process()
        if own.pid not in self._excluded:
            times = own.cpu_times()
            self._before = times.user + times.system
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self.samples.append(self._sample())

    def _sample(self) -> Usage:
        own = psutil.Process()
        resident = largest = 0
        for process in [own, *own.children(recursive=True)]:
            if process.pid in self._excluded:
                continue
            try:
                with process.oneshot():
                    times, memory = process.cpu_times(), process.memory_info().rss
                    identity = (process.pid, process.create_time())
            except psutil.Error:
                continue
            self._cpu_of[identity] = times.user + times.system
            resident += memory
            if process.pid != own.pid and "java" not in process.name():
                largest = max(largest, memory)
        return Usage(time.time(), sum(self._cpu_of.values()) - self._before, resident, largest)


def cpu_at(samples: list[Usage], at: float) -> float:
    """Return the CPU seconds used by then, between two samples by proportion."""
    before = after = None
    for sample in samples:
        if sample.at <= at:
            before = sample
        else:
            after = sample
            break
    if before is None or after is None:
        found = before or after
        return found.cpu_seconds if found is not None else 0.0
    share = (at - before.at) / (after.at - before.at)
    return before.cpu_seconds + share * (after.cpu_seconds - before.cpu_seconds)
