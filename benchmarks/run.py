"""Runs systems against each other on one local broker, interleaved, and writes down what came of it.

    python benchmarks/run.py SUITE [--rounds N] [--records N] [--systems a,b] [--name NAME]

Every round runs each case on each of its systems, one after the other; what disturbs the machine for a while disturbs
all of them. Every output is judged record by record. Results go to benchmarks/results/NAME.json and NAME.md.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from peers.case import Case
from peers.measure import Bench, Run
from peers.report import ratio, save, table
from peers.suites import SUITES
from peers.system import Missing
from peers.systems import SYSTEMS

from twopc.testing.local_broker import LocalBroker

RESULTS = Path(__file__).with_name("results")


def prepared(names: set[str]) -> dict[str, str]:
    """Get what the systems need; return those that can't be had, and why."""
    missing = {}
    for name in sorted(names):
        try:
            SYSTEMS[name].prepare()
        except Missing as reason:
            missing[name] = str(reason)
            print(f"{name} is left out: {reason}", flush=True)
    return missing


def play(bench: Bench, entries: list[tuple[Case, tuple[str, ...]]], rounds: int) -> list[Run]:
    """Run every round; say what each run gave."""
    runs = []
    for number in range(rounds):
        for case, systems in entries:
            # Who goes first changes: what one run leaves behind must not always meet the same one.
            for name in systems if number % 2 == 0 else reversed(systems):
                run = bench.run(SYSTEMS[name], case)
                runs.append(run)
                print(f"{case.label()}: {name}: {_brief(run)}", flush=True)
    return runs


def _brief(run: Run) -> str:
    if run.failure is not None:
        return f"FAILED: {run.failure}"
    rate, cpu = run.last_half or run.whole or 0.0, run.cpu_last_half or run.cpu_whole or 0.0
    return f"{rate / 1000:,.0f} k records/s, {cpu:.2f} CPU s/M, {run.peak_rss_mb:,.0f} MB, {run.wall_s:.1f} s"


def against_bare(runs: list[Run]) -> list[str]:
    """Say how each case of twopc compares with the bare loop of the same round."""
    lines = []
    for case in dict.fromkeys(run.case for run in runs):
        mine = [run for run in runs if run.case == case and run.failure is None]
        for figure in ("last_half", "middle", "cpu_last_half", "cpu_middle"):
            found = ratio(mine, "twopc", "bare", figure)
            if found is not None:
                lines.append(f"{case.label()}: twopc / bare, {figure}: {found:.3f}")
    return lines


def _chosen(asked: str | None, case: Case, usual: tuple[str, ...]) -> list[str]:
    names = usual if asked is None else asked.split(",")
    return [name for name in names if case.job in SYSTEMS[name].jobs]


def main() -> None:
    """Parse, prepare, run, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=list(SUITES), help="; ".join(f"{n}: {s.about}" for n, s in SUITES.items()))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--records", type=int)
    parser.add_argument("--systems", help="run each case on these instead, comma-separated")
    parser.add_argument("--name", help="of the result; the suite's unless given")
    options = parser.parse_args()
    # Whoever ends it wants no broker left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM: nothing is written"))
    suite, load = SUITES[options.suite], os.getloadavg()[0]
    entries = [
        (replace(case, records=options.records or case.records), tuple(_chosen(options.systems, case, names)))
        for case, names in suite.entries
    ]
    missing = prepared({name for _, names in entries for name in names})
    entries = [(case, tuple(name for name in names if name not in missing)) for case, names in entries]
    with tempfile.TemporaryDirectory(prefix="twopc-peers-kafka-") as folder, LocalBroker(Path(folder)) as broker:
        runs = play(Bench(broker), entries, options.rounds or suite.rounds)
    print("\n".join([*table(runs), "", *against_bare(runs)]))
    print(f"written to {save(RESULTS, options.name or options.suite, runs, SYSTEMS, missing, load)}")
    if any(run.failure for run in runs):
        raise SystemExit("some runs have failed: see above")


if __name__ == "__main__":
    main()
