"""The faults of one run, drawn from its seed: so some runs see one fault often, and others none of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from tests.simulation.joins import JOBS, SIZES, SOME_SINKS
from twopc.config import INLINE_BYTES_MAX, NO_TIMEOUT_MS
from twopc.faults.points import CrashPoint

RARE = (
    CrashPoint.AFTER_NEXT_WRITE,
    CrashPoint.COORDINATOR_IN_PRUNE,
    CrashPoint.IN_RESTORE_AFTER_MANIFEST,
    CrashPoint.IN_RESTORE,
    CrashPoint.DRIVER_IN_SETTLE,
)
RAREST = (
    CrashPoint.COORDINATOR_AFTER_RESERVE,
    CrashPoint.AFTER_NEXT_WRITE,
    CrashPoint.IN_RESTORE_AFTER_MANIFEST,
    CrashPoint.DRIVER_IN_SETTLE,
    CrashPoint.DRIVER_AFTER_CONFIRM,
)
AIMED_AT = (*CrashPoint, *RARE, *RAREST)
"""More often at the places that a run seldom comes to with the others in every state."""

RECORDS = range(1, 9)
PARTITIONS = (1, 1, 1, 2, 3)
OTHER_PARTITIONS = (0, 0, 0, 0, 0, 1, 2)
UNLIMITED = 1_000_000
SINKS = (
    *[("out",)] * 8,
    ("out", "topic"),
    ("out", "prefix"),
    ("out", "files"),
    ("files", "out"),
    ("out", "topic", "prefix", "files"),
)
"""Most jobs have one source and one sink: they are played fastest, and see most of what can happen."""

TIMED_ONE_IN = 40
TIMED = ("tumbling", "hopping", "session", "sliding", "timers")
"""What waits for event time, in the few jobs in which it passes: `tests.simulation.timed_job`."""

TIMED_SINKS = (("out",), ("out", "topic"), ("own", "out"), ("out", "own"))

T = TypeVar("T")
_BROUGHT_ABOUT: dict[CrashPoint, dict[str, Any]] = {
    CrashPoint.END_TXN_REPLY_LOST: {"broker_reply_lost": 0.3},
    CrashPoint.END_TXN_NOT_APPLIED: {"end_txn_late": 0.3},
    CrashPoint.END_TXN_CONCURRENT: {"prepare_ms": 300},
    **{
        point: {"commits_globally": True}
        for point in (
            CrashPoint.BEFORE_GLOBAL_COMMIT,
            CrashPoint.AFTER_GLOBAL_COMMIT,
            CrashPoint.AFTER_GLOBAL_CONFIRM,
        )
    },
    CrashPoint.BETWEEN_COMMITS: {"sinks": ("out", "files")},
    CrashPoint.DRIVER_IN_SETTLE: {"second_driver_every_ms": 300, "most_subtasks": 3},
}
"""What it takes to come to a place that no line of ours brings about, or with the others in every state."""


@dataclass(frozen=True, slots=True)
class Faults:
    """The size of a run, and its faults.

    Rates are chances per occasion, `*_every_ms` mean times between two (0: never), other `*_ms` longest times.

    Besides what happens by chance, one process is killed (or paused) where it comes to `aimed_at` for the
    `aimed_occasion`-th time: so that few seeds reach every place. `pause_at_start` stops a subtask that was welcomed
    before it opens its sink; it may wake when its attempt is long over. `batch_cut` is how often a batch is cut behind
    a record; `stored_elsewhere`, how often a subtask's checkpoint folder is for once another than the
    coordinator's, and takes what is stored; `files_decline`, how often the sink that is no Kafka sink
    declines a checkpoint; `commits_globally` gives the first sink a global committer; `follower_elsewhere` says that
    another cluster keeps the consumer group. The settings of checkpoints, and how often people ask for one, are no
    faults; nor are `sizes`, how many records each partition has, `other_sizes`, those of a second source where there
    is one, and `sinks`, those of `tests.simulation.job` in the order in which they pre-commit. Where `input_grows_ms`
    is not 0, the second source's last partition is there from then on. `joins` is what the job joins and how, in the
    words of `tests.simulation.joins`; nothing for a job that doesn't. `timed` says what waits
    for event time, nothing where it is empty; such a job that is `drained` has no end before somebody asks for one.
    `store_answer_lost` is how often a create in the checkpoint store is done and its answer lost, as between a client
    and an object store: the client tries again, or gives up; then the store may be away for some calls, or do it only
    before the next create. One that is refused is `disk_full`. `back_every_ms` is how often a person has the job go
    back to an older checkpoint: what it writes since comes twice then.
    """

    aimed_at: CrashPoint
    aimed_occasion: int
    aimed_pauses: bool
    aimed_in_company: bool
    crash_at_point: float
    crash_in_recovery: float
    pause_at_point: float
    pause_at_start: float
    kill_every_ms: int
    pause_every_ms: int
    kill_all_every_ms: int
    second_coordinator_every_ms: int
    second_driver_every_ms: int
    clock_jumps_every_ms: int
    clock_skew_ms: int
    stream_breaks: float
    duplicates: float
    stalls: float
    network_delay_ms: int
    broker_refuses: float
    broker_reply_lost: float
    end_txn_late: float
    prepare_ms: int
    disk_full: float
    fsync_fails: float
    crash_at_write: float
    power_fails: bool
    bit_rot_every_ms: int
    snapshot_refused: float
    kill_delay_ms: int
    last_producer_epoch: int
    transaction_timeout_ms: int
    embedded: bool
    fault_phase_ms: int
    sizes: tuple[int, ...]
    most_subtasks: int
    interval_ms: int
    max_concurrent: int
    tolerable_failures: int
    retained: int
    min_pause_ms: int
    asked_every_ms: int
    broker_protocol: int
    broker_away_every_ms: int
    ids_forgotten_every_ms: int
    topic_recreated_every_ms: int
    inline_bytes: int
    input_recreated_every_ms: int
    stored_elsewhere: float
    input_deleted_every_ms: int
    batch_cut: float
    commits_globally: bool
    other_sizes: tuple[int, ...]
    sinks: tuple[str, ...]
    files_decline: float
    sink_removed_every_ms: int
    stopped_every_ms: int
    restart_attempts: int
    follower_elsewhere: bool
    input_grows_ms: int
    joins: tuple[str, ...]
    cut_off_every_ms: int = 0
    timed: str = ""
    drained: bool = False
    store_answer_lost: float = 0.0
    quiet: tuple[int, ...] = ()
    back_every_ms: int = 0

    @property
    def waits_for(self) -> str:
        """What waits for event time; nothing in a job whose sources or sinks are other ones than it would have."""
        fits = not self.other_sizes and not self.input_grows_ms and {"out", "topic", "own"}.issuperset(self.sinks)
        return self.timed if fits else ""

    @property
    def ends_drained(self) -> bool:
        """Whether the job has no end before somebody asks for one."""
        return self.drained and bool(self.waits_for)

    def __str__(self) -> str:
        return ", ".join(f"{name}={getattr(value, 'name', value)}" for name, value in asdict(self).items())


class _Draws:
    """The draws of one seed, one after the other."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"faults-{seed}").random

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.chance() * len(choices))]

    def rate(self, *choices: float) -> float:
        return 0.0 if self.chance() < 0.4 else choices[int(self.chance() * len(choices))]

    def every(self, *choices: int) -> int:
        return 0 if self.chance() < 0.4 else choices[int(self.chance() * len(choices))]


def draw(seed: int, *, timeouts: bool = False) -> Faults:
    """Return the faults of a seed; with `timeouts`, transactions and idle ids expire, or topics are recreated."""
    draws = _Draws(seed)
    chance, pick, rate, every = draws.chance, draws.pick, draws.rate, draws.every
    faults = Faults(
        aimed_at=pick(AIMED_AT),
        aimed_occasion=pick((1, 1, 2, 4)),
        aimed_pauses=chance() < 0.5,
        aimed_in_company=chance() < 0.3,
        crash_at_point=rate(0.003, 0.01, 0.03, 0.06),
        crash_in_recovery=rate(0.03, 0.1, 0.4),
        pause_at_point=rate(0.003, 0.01, 0.03, 0.06),
        pause_at_start=rate(0.05, 0.2),
        kill_every_ms=every(150, 500, 1_500),
        pause_every_ms=every(150, 500, 1_500),
        kill_all_every_ms=every(700, 1_700),
        second_coordinator_every_ms=every(1_000, 2_000),
        second_driver_every_ms=every(1_000, 2_000),
        clock_jumps_every_ms=every(500, 1_500),
        clock_skew_ms=pick((0, 5_000, 3_600_000)),
        stream_breaks=rate(0.01, 0.05, 0.2),
        duplicates=rate(0.02, 0.2),
        stalls=rate(0.005, 0.03),
        network_delay_ms=pick((0, 5, 50, 300)),
        broker_refuses=rate(0.01, 0.1),
        broker_reply_lost=rate(0.01, 0.1),
        end_txn_late=rate(0.05, 0.3),
        prepare_ms=pick((0, 0, 10, 300)),
        disk_full=rate(0.003, 0.03),
        fsync_fails=rate(0.003, 0.03),
        crash_at_write=rate(0.001, 0.01),
        power_fails=chance() < 0.5,
        bit_rot_every_ms=pick((300, 1_000)) if chance() < 0.05 else 0,
        snapshot_refused=rate(0.02, 0.2),
        kill_delay_ms=pick((0, 20, 1_000, 6_000, 20_000)),
        last_producer_epoch=pick((4, 32_766, 32_766)),
        transaction_timeout_ms=pick((1_000, 3_000)) if timeouts else NO_TIMEOUT_MS,
        embedded=chance() < 0.5,
        fault_phase_ms=pick((200, 200, 200, 200, 2_000, 2_000)),
        sizes=tuple(pick(RECORDS) for _ in range(pick(PARTITIONS))),
        most_subtasks=pick((1, 1, 1, 2, 3)),
        interval_ms=pick((200, 400)),
        max_concurrent=pick((1, 1, 2, 3)),
        tolerable_failures=pick((0, 1, 3, 3)),
        retained=pick((1, 3)),
        min_pause_ms=pick((0, 0, 0, 100)),
        asked_every_ms=every(400, 1_000, 2_000),
        broker_protocol=pick((1, 2)),
        broker_away_every_ms=every(300, 1_000),
        ids_forgotten_every_ms=every(1_000, 2_000) if timeouts else 0,
        topic_recreated_every_ms=500 if timeouts and chance() < 0.1 else 0,
        inline_bytes=pick((0, 0, 0, INLINE_BYTES_MAX)),
        input_recreated_every_ms=every(500, 1_500) if timeouts and chance() < 0.2 else 0,
        stored_elsewhere=rate(0.05, 0.3) if chance() < 0.3 else 0.0,
        input_deleted_every_ms=every(200, 500) if timeouts and chance() < 0.3 else 0,
        batch_cut=rate(0.1, 0.5),
        commits_globally=not timeouts and chance() < 0.3,
        **(_graph(draws) | _stops(draws) | _growth(draws)),
    )
    job = {} if timeouts else _joined_job(draws) or _time(draws)
    return replace(faults, **(_more(draws, timeouts) | _BROUGHT_ABOUT.get(faults.aimed_at, {}) | job))


def _graph(draws: _Draws) -> dict[str, Any]:
    """Return what the job is besides a row of one source and one sink."""
    return {
        "other_sizes": tuple(draws.pick(RECORDS) for _ in range(draws.pick(OTHER_PARTITIONS))),
        "sinks": draws.pick(SINKS),
        "files_decline": draws.rate(0.1, 0.4),
        "sink_removed_every_ms": draws.every(150, 500, 1_500),
        "joins": (),
    }


def _stops(draws: _Draws) -> dict[str, Any]:
    """Return how often a driver is asked to stop, how soon it gives up, and who is told of positions."""
    return {
        "stopped_every_ms": draws.every(60, 300, 1_000) if draws.chance() < 0.4 else 0,
        "restart_attempts": draws.pick((UNLIMITED, UNLIMITED, 0, 1, 3)),
        "follower_elsewhere": draws.chance() < 0.1,
    }


def _growth(draws: _Draws) -> dict[str, Any]:
    """Return when the second source gets another partition, in the few jobs in which it does."""
    if draws.chance() >= 0.02:
        return {"input_grows_ms": 0}
    return {"input_grows_ms": draws.pick((50, 500, 1_500)), "other_sizes": (draws.pick(RECORDS), draws.pick(RECORDS))}


def _joined_job(draws: _Draws) -> dict[str, Any]:
    """Return what a job is that joins, in the few in which it does."""
    if draws.chance() >= 0.02:
        return {}
    partitions = range(draws.pick((1, 1, 2)))
    return {
        "joins": draws.pick(JOBS),
        "sizes": tuple(draws.pick(SIZES) for _ in partitions),
        "other_sizes": tuple(draws.pick(SIZES) for _ in partitions),
        "sinks": draws.pick(SOME_SINKS),
        "input_grows_ms": 0,
        "fault_phase_ms": 2_000,
    }


def _more(draws: _Draws, timeouts: bool) -> dict[str, Any]:
    return _silence(draws) | _lost_answers(draws) | _quiet(draws, 0.3 if timeouts else 0.1)


def _silence(draws: _Draws) -> dict[str, Any]:
    """Return how often a machine is cut off from all others, in the few jobs in which one is."""
    if draws.chance() >= 0.03:
        return {"cut_off_every_ms": 0}
    return {"cut_off_every_ms": draws.pick((300, 1_000))}


def _lost_answers(draws: _Draws) -> dict[str, Any]:
    """Return how often the checkpoint store's answer is lost, in the jobs in which it is."""
    return {"store_answer_lost": draws.rate(0.02, 0.1, 0.3) if draws.chance() < 0.3 else 0.0}


def _quiet(draws: _Draws, share: float) -> dict[str, Any]:
    """Return the offsets of which no sink takes anything, in the share of the jobs that write nothing for a while."""
    if draws.chance() >= share:
        return {}
    first = draws.pick((0, 1, 2, 3))
    return {"quiet": tuple(range(first, first + draws.pick((2, 4, 8))))}


def _time(draws: _Draws) -> dict[str, Any]:
    """Return what it takes for event time to pass, in the few jobs in which it does."""
    if draws.chance() * TIMED_ONE_IN >= 1:
        return {}
    drained = {"drained": True, "asked_every_ms": 150} if draws.chance() < 0.5 else {}
    return drained | {
        "timed": draws.pick(TIMED),
        "sizes": tuple(4 + draws.pick(range(11)) for _ in range(draws.pick((1, 2)))),
        "other_sizes": (),
        "sinks": draws.pick(TIMED_SINKS),
        "input_grows_ms": 0,
        "commits_globally": False,
    }
