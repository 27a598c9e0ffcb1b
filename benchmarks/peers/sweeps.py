"""The sweeps of settings of our own job, as `twopc bench` measures it: the values that are tried, by name."""

from __future__ import annotations

from dataclasses import dataclass

MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One value of what is varied, and `twopc bench` called for it."""

    label: str
    records: int = 5 * MILLION
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Points, each measured once a round. `figures` are the columns of the table, by name in `BENCHED`."""

    about: str
    points: tuple[Point, ...]
    figures: tuple[str, ...]
    rounds: int = 3


SPEED = ("k records/s", "CPU s/M", "checkpoint p50 ms", "checkpoint p99 ms", "pause p50 ms", "pause p99 ms")
SIZED = (*SPEED, "MB/s", "largest Python MB")


def _record_size(size: int, records: int) -> Point:
    return Point(label=f"{size:,} B", records=records, options=("--record-bytes", str(size)))


SWEEPS = {
    "latency": Sweep(
        about="from append to visible at 1,000 records/s, by checkpoint interval",
        points=tuple(
            Point(label=f"{ms} ms", records=30_000, options=("--rate", "1000", "--checkpoint-interval", f"{ms}ms"))
            for ms in (100, 500, 1_000)
        ),
        figures=("latency p50 ms", "latency p99 ms", "latency max ms", "checkpoint p50 ms", "checkpoint p99 ms"),
    ),
    "intervals": Sweep(
        about="throughput and pauses of the data loop, by checkpoint interval",
        points=tuple(
            Point(label=f"{ms:,} ms", records=10 * MILLION, options=("--checkpoint-interval", f"{ms}ms"))
            for ms in (100, 1_000, 10_000)
        ),
        figures=(*SPEED, "pause max ms", "checkpoints"),
        rounds=5,
    ),
    "partitions": Sweep(
        about="by number of partitions",
        points=tuple(
            Point(label=f"{n} partitions", records=3 * MILLION, options=("--partitions", str(n))) for n in (4, 64, 512)
        ),
        figures=SPEED,
    ),
    "subtasks": Sweep(
        about="by number of subtasks",
        points=tuple(
            Point(
                label=f"{n} subtasks",
                options=("--parallelism", str(n), "--partitions", "8", "--master", f"local[{n}]"),
            )
            for n in (1, 2, 8)
        ),
        figures=SPEED,
    ),
    "record-size": Sweep(
        about="by size of a record",
        points=(
            _record_size(20, 5 * MILLION),
            _record_size(100, 5 * MILLION),
            _record_size(1_000, MILLION),
            _record_size(100_000, 20_000),
        ),
        figures=SIZED,
    ),
    "keys": Sweep(
        about="a running count per key, by number of keys",
        points=tuple(
            Point(label=f"{n:,} keys", records=3 * MILLION, options=("examples/count_by_key.py", "--keys", str(n)))
            for n in (1_000, 100_000, MILLION)
        ),
        figures=(*SPEED, "largest Python MB"),
    ),
}
