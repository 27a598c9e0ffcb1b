"""The comparisons that are made, by name."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peers.case import Case

PAIR = ("bare", "twopc")
YARDSTICKS = ("bare", "c", "twopc")
STATEFUL_PEERS = ("twopc", "kafka-streams", "flink", "quix")


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases, each on systems of its own; `rounds` are as many as are asked for, unless it says otherwise."""

    about: str
    entries: tuple[tuple[Case, tuple[str, ...]], ...]
    records: int
    rounds: int = 5


def _suite(about: str, records: int, rounds: int, *entries: tuple[Case, tuple[str, ...]]) -> Suite:
    return Suite(about, tuple((replace(case, records=records), systems) for case, systems in entries), records, rounds)


SUITES = {
    "quick": _suite(
        "stateless, keyed and JSON against the bare loop, small",
        500_000,
        1,
        (Case(), PAIR),
        (Case(job="count"), PAIR),
        (Case(job="keep_even"), PAIR),
    ),
    "upper": _suite(
        "100-byte values upper-cased, one subtask and two, against a bare loop and C",
        5_000_000,
        5,
        (Case(), YARDSTICKS),
        (Case(width=2), YARDSTICKS),
    ),
    "paired-intervals": _suite(
        "a checkpoint every 100 ms against every 10 s, and what that costs a bare loop",
        5_000_000,
        3,
        (Case(interval_ms=100), PAIR),
        (Case(interval_ms=10_000), PAIR),
    ),
    "peers": _suite(
        "the stateless and the keyed job on every system",
        5_000_000,
        3,
        (Case(), ("bare", "c", "twopc", "flink", "kafka-streams", "spark")),
        (Case(job="count"), ("twopc", "flink", "kafka-streams")),
    ),
    "peers-python": _suite(
        "the same on Python systems, with fewer records: they take a tenth of the rate",
        1_000_000,
        3,
        (Case(), ("twopc", "quix", "pyflink")),
        (Case(job="count"), ("twopc", "quix")),
    ),
    "count": _suite(
        "a running count per key in RocksDB, beside the stateless job and a dict",
        5_000_000,
        5,
        (Case(), ("twopc",)),
        (Case(job="count"), PAIR),
        (Case(job="count", keys=1_000_000), PAIR),
    ),
    "operators": _suite(
        "a new key and a count, windows, a table, dead letters, on every system that has them",
        1_000_000,
        3,
        (Case(job="rekeyed_count"), STATEFUL_PEERS),
        (Case(job="windowed_count"), STATEFUL_PEERS),
        (Case(job="table_join"), STATEFUL_PEERS),
        (Case(job="dead_letters"), STATEFUL_PEERS),
    ),
    "new-keys": _suite(
        "a new key and a count, on few keys and on a million, beside the JVM's",
        2_000_000,
        3,
        (Case(job="rekeyed_count"), ("twopc", "kafka-streams", "flink")),
        (Case(job="rekeyed_count", keys=1_000_000), ("twopc", "kafka-streams", "flink")),
    ),
    "many-keys": _suite(
        "windows and a table on 100,000 keys, on every system that has them",
        1_000_000,
        3,
        (Case(job="windowed_count", keys=100_000), STATEFUL_PEERS),
        (Case(job="table_join", keys=100_000), STATEFUL_PEERS),
    ),
    "interval-join": _suite(
        "two streams, within half a second, on every system that has them",
        500_000,
        3,
        (Case(job="interval_join"), ("twopc", "twopc-process", "kafka-streams", "flink", "quix")),
    ),
    "memory": _suite("resident memory over 20,000,000 records", 20_000_000, 1, (Case(), ("twopc", "twopc-process"))),
    "window-memory": _suite(
        "resident memory over 10,000,000 records in windows on 100,000 keys",
        10_000_000,
        1,
        (Case(job="windowed_count", keys=100_000), ("twopc-process",)),
    ),
    "native": _suite(
        "records by the compiled part, as objects, and the bare loop",
        4_000_000,
        5,
        (Case(), ("bare", "twopc-objects", "twopc-process")),
        (Case(job="count"), ("twopc-objects", "twopc-process")),
    ),
    "batches": _suite(
        "map_batches on columns that never become objects, against C",
        5_000_000,
        5,
        (Case(job="upper_batches"), ("c", "twopc-process")),
    ),
    "serdes": _suite(
        "JSON and Avro against a bare loop with the same libraries",
        5_000_000,
        5,
        (Case(job="keep_even"), PAIR),
        (Case(job="keep_even_avro"), PAIR),
    ),
}
