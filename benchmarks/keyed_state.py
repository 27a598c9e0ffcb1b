"""What a keyed operator costs by itself, without Kafka: CPU seconds a million records, by the number of keys.

    python benchmarks/keyed_state.py [--records 1000000] [--keys 1000 100000 1000000]

Records come as a consumer hands them over: batches of 1,000, in runs of 250 from one of four partitions, keys drawn at
random in each. The states go to RocksDB, and are written back once in 500,000 records, as a checkpoint would.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from twopc import Job, Json, KafkaSink, KafkaSource
from twopc.operators import Dataflow
from twopc.operators.turn import Turn
from twopc.record import Batch
from twopc.state.keyed import KeyedState
from twopc.state.rocksdb import RocksDBBackend
from twopc.testing.rows import InputRow

BATCH, RUN, PARTITIONS = 1_000, 250, 4
BETWEEN_WRITES = 500_000
VALUE = b"x" * 100


def count(total: int | None, _value: bytes) -> tuple[int, bytes]:
    """Return the new state of the key and what to emit."""
    total = (total or 0) + 1
    return total, b"%d" % total


COUNTING = (
    Job("count")
    .source(KafkaSource("in"), name="in")
    .stateful_map(count, name="count", state=Json())
    .sink(KafkaSink("out"))
    .definition()
)


def batches(records: int, keys: int) -> Iterator[Batch]:
    """Yield the input; the same for the same numbers."""
    rng = random.Random(1)
    for number in range(records // BATCH):
        rows = [
            InputRow(VALUE, key_=b"%d" % rng.randrange(keys), partition_=(number + index // RUN) % PARTITIONS)
            for index in range(BATCH)
        ]
        yield Batch(rows, [VALUE] * BATCH, [row.key() for row in rows])


def measure(records: int, keys: int) -> float:
    """Return the CPU seconds a million records; making the records is not counted."""
    used = 0.0
    with tempfile.TemporaryDirectory() as folder:
        backend = RocksDBBackend.open_fresh(Path(folder) / "state")
        flow = Dataflow(COUNTING.operators, KeyedState(backend))
        for number, batch in enumerate(batches(records, keys), start=1):
            started = time.process_time()
            flow.put(Turn.of("in", batch))
            flow.advance()
            if number * BATCH % BETWEEN_WRITES == 0:
                flow.write_back()
            used += time.process_time() - started
        backend.close()
    return used / records * 1e6


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    options = parser.parse_args()
    print("| keys in each partition | CPU s a million records |\n|---|---|")
    for keys in options.keys:
        print(f"| {keys:,} | {measure(options.records, keys):.2f} |", flush=True)


if __name__ == "__main__":
    main()
