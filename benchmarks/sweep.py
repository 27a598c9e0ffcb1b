"""What one setting does to our own job: `twopc bench` for each value, interleaved, on one local broker.

    python benchmarks/sweep.py SWEEP [--rounds N] [--share F] [--host spark|process] [--name NAME]

Results go to benchmarks/results/NAME.json and NAME.md: least, median and greatest of each figure over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from peers.report import machine
from peers.sweeps import SWEEPS, Point, Sweep

from twopc.bench.plan import MIN_RECORDS
from twopc.bench.result import BenchResult
from twopc.testing.local_broker import LocalBroker

ROOT = Path(__file__).parents[1]
WARM_UP_SHARE = 0.3
RESULTS = Path(__file__).with_name("results")
LIMIT_SECONDS = 900

BENCHED: dict[str, Callable[[BenchResult], float | None]] = {
    "k records/s": lambda result: (result.records_per_s or 0.0) / 1000,
    "CPU s/M": lambda result: result.cpu_s_per_million or result.cpu_s_per_million_whole,
    "checkpoint p50 ms": lambda result: result.checkpoint_ms.get("p50"),
    "checkpoint p99 ms": lambda result: result.checkpoint_ms.get("p99"),
    "pause p50 ms": lambda result: result.pause_ms.get("p50"),
    "pause p99 ms": lambda result: result.pause_ms.get("p99"),
    "pause max ms": lambda result: result.pause_ms.get("max"),
    "latency p50 ms": lambda result: result.latency_ms.get("p50"),
    "latency p99 ms": lambda result: result.latency_ms.get("p99"),
    "latency max ms": lambda result: result.latency_ms.get("max"),
    "checkpoints": lambda result: result.checkpoints,
    "largest Python MB": lambda result: result.worker_mb,
    "MB/s": lambda result: (result.records_per_s or 0.0) * float(result.settings["record_bytes"]) / 1e6,
}


def measure(point: Point, servers: str, host: str, share: float, file: Path) -> BenchResult:
    """Call `twopc bench` once."""
    records = max(MIN_RECORDS, int(point.records * share))
    argv = [sys.executable, "-m", "twopc", "bench", *point.options, "--bootstrap-servers", servers, "--quiet"]
    argv += ["--records", str(records), "--host", host, "--json", str(file)]
    subprocess.run(argv, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, timeout=LIMIT_SECONDS)
    return BenchResult.read(file)


def play(sweep: Sweep, servers: str, host: str, share: float, rounds: int) -> dict[str, list[BenchResult]]:
    """Measure every point once a round; say what each gave."""
    found: dict[str, list[BenchResult]] = {point.label: [] for point in sweep.points}
    with tempfile.TemporaryDirectory(prefix="twopc-sweep-") as folder:
        # Not counted: a broker that has just started compiles its code for some seconds, and answers late.
        measure(sweep.points[0], servers, host, share * WARM_UP_SHARE, Path(folder) / "warm-up.json")
        for number in range(rounds):
            for point in sweep.points if number % 2 == 0 else reversed(sweep.points):
                result = measure(point, servers, host, share, Path(folder) / "result.json")
                found[point.label].append(result)
                print(f"{point.label}: {', '.join(f'{n} {_one(n, result)}' for n in sweep.figures)}", flush=True)
    return found


def table(sweep: Sweep, found: dict[str, list[BenchResult]]) -> list[str]:
    """Return the lines of a table, a row for each point."""
    lines = [f"| | {' | '.join(sweep.figures)} |", f"|{'---|' * (len(sweep.figures) + 1)}"]
    for label, results in found.items():
        cells = [_cell([BENCHED[name](result) for result in results]) for name in sweep.figures]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return lines


def _one(name: str, result: BenchResult) -> str:
    return _cell([BENCHED[name](result)]).split(" / ")[0]


def _cell(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    digits = 0 if max(known) >= 100 else 2
    return " / ".join(f"{value:,.{digits}f}" for value in (min(known), statistics.median(known), max(known)))


def save(name: str, sweep: Sweep, found: dict[str, list[BenchResult]], load: float) -> Path:
    """Write NAME.json and NAME.md; return the path of the table."""
    RESULTS.mkdir(exist_ok=True)
    where = machine()
    body = {"machine": where, "load_before": load, "points": {k: [r.to_json() for r in v] for k, v in found.items()}}
    (RESULTS / f"{name}.json").write_text(json.dumps(body) + "\n")
    versions = ", ".join(f"{k} {v}" for k, v in next(iter(found.values()))[0].versions.items())
    lines = [
        f"# {name}: {sweep.about}",
        "",
        *table(sweep, found),
        "",
        f"Least / median / greatest. {where['cores']} cores, {where['memory_gb']} GB, Python {where['python']}, "
        f"{versions}; load before the first run {load:.2f}. The method: [README](../README.md).",
    ]
    (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n")
    return RESULTS / f"{name}.md"


def main() -> None:
    """Parse, run, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sweep", choices=list(SWEEPS), help="; ".join(f"{n}: {s.about}" for n, s in SWEEPS.items()))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--share", type=float, default=1.0, help="run on this share of the records, to try it out")
    parser.add_argument("--host", choices=["spark", "process"], default="spark")
    parser.add_argument("--name", help="of the result; the sweep's unless given")
    options = parser.parse_args()
    sweep, load = SWEEPS[options.sweep], os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="twopc-sweep-kafka-") as folder, LocalBroker(Path(folder)) as broker:
        found = play(sweep, broker.bootstrap_servers, options.host, options.share, options.rounds or sweep.rounds)
    print("\n".join(table(sweep, found)))
    print(f"written to {save(options.name or options.sweep, sweep, found, load)}")


if __name__ == "__main__":
    main()
