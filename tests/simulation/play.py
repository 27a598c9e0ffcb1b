"""Plays many seeds on all cores, in shares, and adds up what they found. A seed plays the same run wherever it is."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field

from tests.simulation.faults import draw
from tests.simulation.patches import replaced
from tests.simulation.shrink import Case
from tests.simulation.simulate import Result

SHARE = 100


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a run, besides what its seed draws.

    With `timeouts`, transactions expire: losses must then be said.
    """

    timeouts: bool = False

    def case(self, seed: int) -> Case:
        return Case(seed, draw(seed, timeouts=self.timeouts))

    def __str__(self) -> str:
        return " --timeouts" * self.timeouts


@dataclass(slots=True)
class Tally:
    """The results of some seeds. `failed` has the first violation of each that failed."""

    played: int = 0
    lost: int = 0
    failed: dict[int, str] = field(default_factory=dict)
    coverage: Counter[str] = field(default_factory=Counter)
    cpu_seconds: float = 0.0

    def count(self, result: Result) -> None:
        self.played += 1
        self.lost += bool(result.lost)
        self._cover(result.coverage)
        if result.violations:
            self.failed[result.seed] = result.violations[0]

    def add(self, other: Tally) -> None:
        self.played += other.played
        self.lost += other.lost
        self.failed.update(other.failed)
        self._cover(other.coverage)
        self.cpu_seconds += other.cpu_seconds

    def _cover(self, coverage: Counter[str]) -> None:
        for what, count in coverage.items():
            self.coverage[what] += count


def play_here(seeds: range, rules: Rules) -> Tally:
    """Play in this process, one after the other."""
    tally = Tally()
    started = time.process_time()
    with replaced():
        for seed in seeds:
            tally.count(rules.case(seed).play())
            # A run leaves cycles behind: without them the next one has the same memory, which is near.
            gc.collect(0)
    tally.cpu_seconds = time.process_time() - started
    return tally


def play(seeds: range, rules: Rules, processes: int | None = None) -> Generator[Tally, None, None]:
    """Yield what each share came to, in no order; in one process per core unless told otherwise.

    Whoever stops listening, or is interrupted, ends the processes.
    """
    shares = [(seeds[start : start + SHARE], rules) for start in range(0, len(seeds), SHARE)]
    processes = min(processes or os.cpu_count() or 1, len(shares))
    if processes <= 1:
        yield from (play_here(*share) for share in shares)
        return
    with multiprocessing.get_context("spawn").Pool(processes, _settle_in) as pool:
        yield from pool.imap_unordered(_play_share, shares)


def _settle_in() -> None:
    """Leave an interrupt to the process that asked, and what was imported alone when garbage is looked for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    gc.disable()


def _play_share(share: tuple[range, Rules]) -> Tally:
    return play_here(*share)
