"""How badly one run is treated: drawn from its seed, so that some runs see one fault often and others none of it."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass

from twopc.config import NO_TIMEOUT_MS
from twopc.crashpoints import CrashPoint


@dataclass(frozen=True, slots=True)
class Faults:
    """How big a run is, and how badly it is treated.

    Rates are chances per occasion, `*_every_ms` mean times between two (0: never), other `*_ms` longest times.

    Besides what happens by chance, one process is killed (or paused) where it comes to `aimed_at` for the
    `aimed_occasion`-th time: so that few seeds reach every place. `pause_at_start` stops a subtask that was welcomed
    before it opens its sink; it may wake when its attempt is long over. What is drawn last are no faults: the settings
    of checkpoints, and how often people ask for one.
    """

    aimed_at: CrashPoint
    aimed_occasion: int
    aimed_pauses: bool
    crash_at_point: float
    pause_at_point: float
    pause_at_start: float
    kill_every_ms: int
    pause_every_ms: int
    kill_all_every_ms: int
    second_coordinator_every_ms: int
    stream_breaks: float
    duplicates: float
    network_delay_ms: int
    broker_refuses: float
    broker_reply_lost: float
    end_txn_late: float
    prepare_ms: int
    disk_full: float
    snapshot_refused: float
    kill_delay_ms: int
    last_producer_epoch: int
    transaction_timeout_ms: int
    embedded: bool
    fault_phase_ms: int
    sizes: tuple[int, ...]
    most_subtasks: int
    max_concurrent: int
    tolerable_failures: int
    retained: int
    min_pause_ms: int
    asked_every_ms: int

    def __str__(self) -> str:
        return ", ".join(f"{name}={getattr(value, 'name', value)}" for name, value in asdict(self).items())


def draw(seed: int, *, timeouts: bool = False) -> Faults:
    """Return the faults of a seed; with `timeouts`, transactions expire."""
    rng = random.Random(f"faults-{seed}")

    def rate(*choices: float) -> float:
        return 0.0 if rng.random() < 0.4 else rng.choice(choices)

    def every(*choices: int) -> int:
        return 0 if rng.random() < 0.4 else rng.choice(choices)

    return Faults(
        aimed_at=rng.choice(tuple(CrashPoint)),
        aimed_occasion=rng.randint(1, 4),
        aimed_pauses=rng.random() < 0.5,
        crash_at_point=rate(0.003, 0.01, 0.03),
        pause_at_point=rate(0.003, 0.01, 0.03),
        pause_at_start=rate(0.05, 0.2),
        kill_every_ms=every(150, 500, 1_500),
        pause_every_ms=every(150, 500, 1_500),
        kill_all_every_ms=every(700, 1_700),
        second_coordinator_every_ms=every(1_000, 2_000),
        stream_breaks=rate(0.01, 0.05, 0.2),
        duplicates=rate(0.02, 0.2),
        network_delay_ms=rng.choice((0, 5, 50, 300)),
        broker_refuses=rate(0.01, 0.1),
        broker_reply_lost=rate(0.01, 0.1),
        end_txn_late=rate(0.05, 0.3),
        prepare_ms=rng.choice((0, 0, 10, 300)),
        disk_full=rate(0.01, 0.1),
        snapshot_refused=rate(0.02, 0.2),
        kill_delay_ms=rng.choice((0, 20, 1_000, 6_000, 20_000)),
        last_producer_epoch=rng.choice((4, 32_766, 32_766)),
        transaction_timeout_ms=rng.choice((1_000, 3_000)) if timeouts else NO_TIMEOUT_MS,
        embedded=rng.random() < 0.5,
        fault_phase_ms=rng.choice((500, 500, 1_000, 1_000, 2_500)),
        sizes=tuple(rng.randint(2, 12) for _ in range(rng.randint(1, 3))),
        most_subtasks=3,
        max_concurrent=rng.choice((1, 2, 3)),
        tolerable_failures=rng.choice((0, 1, 3, 3)),
        retained=rng.choice((1, 3)),
        min_pause_ms=rng.choice((0, 0, 0, 100)),
        asked_every_ms=every(100, 300, 800),
    )
