"""What exactly-once costs a streaming query of Spark's: its own sink and ours, in turns within one Spark.

    python benchmarks/streaming_sinks.py [--records 4000000] [--rows-a-batch 400000] [--rounds 3] [--json FILE]

Spark 4.2.0 is the newest that has a Kafka connector. It reads by that, runs `upper`, and writes by its own sink, which
is at least once, by `foreachBatch(kafka_sink(...))` and by `format("twopc-kafka")`, which are exactly once: each in
every round, with new output and new checkpoints, as fast as it can. What a query comes to is the rows of its batches
over the seconds that Spark needed for them, from trigger to commit, without the first two; choose the rows so that a
batch takes about a second. Each round compares ours with Spark's sink of the same round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peers.case import Case
from peers.fetch import environment, jars, site_packages
from peers.spark_sql import PROGRAM, REQUIREMENT
from peers.topics import Inputs

from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import create_topic

ROOT = Path(__file__).resolve().parents[1]
SPARKS = "kafka"
SINKS = (SPARKS, "foreachBatch", "twopc-kafka")
WARM_UP_BATCHES = 2
LIMIT_SECONDS = 3_600


def python_with_both() -> Path:
    """Return the Python of an environment with that Spark and all that twopc needs, but for twopc itself."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return environment("spark-and-twopc", REQUIREMENT, *(each for each in needed if not each.startswith("pyspark")))


def measured(servers: str, source: str, options: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """Run all queries in one Spark; yield what each has told of its batches."""
    python = python_with_both()
    plan = [(number, sink) for number in range(options.rounds) for sink in SINKS]
    for number, sink in plan:
        create_topic(servers, f"{sink}-{number}", options.partitions)
    settings = {
        "servers": servers,
        "source": source,
        "queries": plan,
        "rows": options.rows_a_batch,
        "folder": str(folder),
        "width": options.partitions,
        "jars": ",".join(map(str, jars(PROGRAM).glob("*.jar"))),
    }
    own = {
        "PYSPARK_PYTHON": str(python),
        "SPARK_HOME": str(site_packages(python) / "pyspark"),
        "PYTHONPATH": str(ROOT),
    }
    command = [str(python), str(Path(__file__).with_name("run_streaming_sinks.py")), json.dumps(settings)]
    with subprocess.Popen(command, env=os.environ | own, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
        if process.wait(LIMIT_SECONDS) != 0:
            raise SystemExit("Spark has failed; see above")


def rate(batches: list[dict[str, float]]) -> float:
    """Return rows a second of the batches behind the first."""
    counted = batches[WARM_UP_BATCHES:]
    return sum(each["rows"] for each in counted) / sum(each["seconds"] for each in counted)


def main() -> None:
    """Parse; start a broker; measure; print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--rows-a-batch", type=int, default=400_000)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.records < (WARM_UP_BATCHES + 1) * options.rows_a_batch:
        parser.error(f"--records: take at least {WARM_UP_BATCHES + 1} times as many as --rows-a-batch")
    rates: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="twopc-sinks-") as name, LocalBroker(Path(name) / "kafka") as broker:
        servers = broker.bootstrap_servers
        source = Inputs(servers).topic(Case(job="upper", records=options.records, partitions=options.partitions))
        for told in measured(servers, source, options, Path(name)):
            rates[told["sink"]].append(rate(told["batches"]))
            seconds = statistics.median(each["seconds"] for each in told["batches"])
            print(
                f"{told['sink']:>13}: {rates[told['sink']][-1]:>9,.0f} rows/s, a batch takes {seconds:.2f} s",
                flush=True,
            )
    for sink in SINKS[1:]:
        ratios = [ours / theirs for ours, theirs in zip(rates[sink], rates[SPARKS], strict=True)]
        said = ", ".join(f"{each:.2f}" for each in ratios)
        print(f"{sink}: {statistics.median(ratios):.2f} of the rate of Spark's at-least-once sink ({said})")
    if options.json:
        options.json.write_text(json.dumps({"rows_a_batch": options.rows_a_batch, "rates": rates}) + "\n")


if __name__ == "__main__":
    main()
