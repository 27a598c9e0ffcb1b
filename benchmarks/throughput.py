"""Throughput of twopc against the bare loop, interleaved pairs on one broker: records/s and CPU seconds a million.

    python benchmarks/throughput.py --records 1000000 --pairs 3 [--host process|spark] [--json FILE]

A rate is taken between the append times of a run's output records, without the first and the last tenth, so start-up
and the end don't count. CPU is that of the whole process tree of a run, start-up included, and is also given without
it: less the CPU of a run over no records. Every run's output is counted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from twopc.bench.figures import steady_rate
from twopc.testing.local_broker import LocalBroker
from twopc.testing.topics import Write, create_topic, produce, read_topic

HERE = Path(__file__).parent
PARTITIONS = 4
VALUE = b"the quick brown fox jumps over the lazy dog, and then it jumps back over it again, a hundred bytes.."


@dataclass(frozen=True, slots=True)
class Result:
    """One run. Rates are records a second, CPU is seconds a million records."""

    system: str
    rate: float
    cpu_whole: float
    cpu_steady: float


def children_cpu() -> float:
    """CPU seconds of all children that have ended and been waited for, theirs included."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def checked_rate(servers: str, topic: str, records: int) -> float:
    """Records a second in steady state; checks the count."""
    stamps = [record.timestamp for record in read_topic(servers, topic, timeout_s=300)]
    if len(stamps) != records:
        raise SystemExit(f"{topic} has {len(stamps)} records instead of {records}")
    return steady_rate(stamps) or 0.0


class Bench:
    """Runs the systems on one broker."""

    def __init__(self, servers: str, folder: Path, records: int, host: str) -> None:
        self.servers = servers
        self.folder = folder
        self.records = records
        self.host = host
        self._number = 0

    def load(self) -> None:
        """Fill the input, and make an empty one."""
        for topic in ("bench-in", "bench-empty"):
            create_topic(self.servers, topic, PARTITIONS)
        produce(self.servers, "bench-in", (Write(VALUE, key=b"%d" % (n % 1000)) for n in range(self.records)))

    def run(self, system: str, source: str = "bench-in") -> tuple[str, float]:
        """Run one system once; return its output topic and its CPU seconds."""
        self._number += 1
        target = f"bench-out-{self._number}"
        # What counts is when the broker appended a record, not the timestamp that the record brought.
        create_topic(self.servers, target, PARTITIONS, settings={"message.timestamp.type": "LogAppendTime"})
        before = children_cpu()
        subprocess.run(
            self._command(system, source, target),
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"BENCH_JOB": f"bench-{self._number}", "BENCH_SOURCE": source, "BENCH_TARGET": target},
        )
        return target, children_cpu() - before

    def _command(self, system: str, source: str, target: str) -> list[str]:
        servers = ("--bootstrap-servers", self.servers)
        if system == "bare":
            script = (str(HERE / "bare_loop.py"), *servers, "--source", source, "--target", target)
            return [sys.executable, *script]
        job = ("-m", "twopc", "run", str(HERE / "upper_job.py"), *servers, "--until-end", "--host", self.host)
        place = ("--checkpoint-dir", str(self.folder / "checkpoints"), "--master", "local[1]", "--quiet")
        return [sys.executable, *job, *place]

    def measure(self, system: str, idle_cpu: float) -> Result:
        """Run once and judge."""
        target, cpu = self.run(system)
        million = self.records / 1e6
        rate = checked_rate(self.servers, target, self.records)
        return Result(system, rate, cpu / million, (cpu - idle_cpu) / million)


def report(results: list[Result]) -> str:
    """Medians and ranges, as a table."""
    lines = [f"{'system':8}{'k records/s':>28}{'CPU s/M whole':>20}{'CPU s/M steady':>22}"]
    for system in ("bare", "twopc"):
        mine = [result for result in results if result.system == system]
        cells = []
        for name, scale in (("rate", 1e-3), ("cpu_whole", 1.0), ("cpu_steady", 1.0)):
            values = sorted(getattr(result, name) * scale for result in mine)
            cells.append(f"{values[0]:.2f} / {statistics.median(values):.2f} / {values[-1]:.2f}")
        lines.append(f"{system:8}{cells[0]:>28}{cells[1]:>20}{cells[2]:>22}")
    return "\n".join(lines)


def main() -> None:
    """Run the pairs and print the table: min / median / max."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--host", choices=["process", "spark"], default="process")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="twopc-bench-") as name, LocalBroker(Path(name) / "kafka") as broker:
        bench = Bench(broker.bootstrap_servers, Path(name), options.records, options.host)
        bench.load()
        idle = {system: bench.run(system, "bench-empty")[1] for system in ("bare", "twopc")}
        results = []
        for _ in range(options.pairs):
            results += [bench.measure(system, idle[system]) for system in ("bare", "twopc")]
            print(results[-2], results[-1], sep="\n", flush=True)
    print(report(results))
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")


if __name__ == "__main__":
    main()
