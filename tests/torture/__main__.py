"""`python -m tests.torture`: so many runs, or so many seconds of them, from a seed on; see `make torture`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash_cells.rig import Rig, load_input
from tests.torture.plan import Cluster, Plan, draw
from tests.torture.run import Run
from twopc.faults.points import REACHED_VARIABLE, CrashPoint, points_reached
from twopc.testing.local_broker import LocalBroker


@dataclass
class Summary:
    """The results of all runs."""

    runs: int = 0
    faults: int = 0
    failed: list[int] = field(default_factory=list)
    clusters: Counter[str] = field(default_factory=Counter)


class Torturer:
    """Plays runs, each on a cluster that stays for the next one if that wants the same."""

    def __init__(self, folder: Path, running: ExitStack) -> None:
        self._folder = folder
        self._running = running
        self._cluster: Cluster | None = None
        self._broker: LocalBroker | None = None
        self._input = ""

    def play(self, plan: Plan, summary: Summary) -> list[str]:
        """Play one plan; return what is wrong."""
        broker = self._broker_for(plan)
        folder = self._folder / f"seed-{plan.seed}"
        rig = Rig(
            broker.bootstrap_servers,
            folder,
            f"torture-{plan.seed}",
            self._input,
            settings={"checkpoint_timeout": "3s", "restart_attempts": "30"},
        )
        rig.create_output()
        run = Run(plan, rig, broker)
        found = run.play()
        summary.runs += 1
        summary.faults += run.faults
        summary.clusters[str(plan.cluster)] += 1
        return found

    def _broker_for(self, plan: Plan) -> LocalBroker:
        if self._broker is None or plan.cluster != self._cluster:
            self._running.close()
            cluster = self._cluster = plan.cluster
            made = LocalBroker(
                self._folder / f"kafka-from-{plan.seed}",
                brokers=cluster.brokers,
                transaction_version=cluster.transaction_version,
                light=True,
            )
            self._broker = self._running.enter_context(made)
            self._input = f"torture-in-{plan.seed}"
            load_input(made.bootstrap_servers, self._input)
        return self._broker


def torture(seed: int, runs: int, seconds: float, folder: Path) -> Summary:
    """Play `runs` runs, or as many as fit into `seconds`, from `seed` on; say on standard output how each went."""
    summary, deadline = Summary(), time.monotonic() + seconds
    with ExitStack() as running:
        torturer = Torturer(folder, running)
        number = seed
        while summary.runs < runs if runs else time.monotonic() < deadline:
            plan = draw(number)
            _say(f"seed {number}: {plan}")
            found = torturer.play(plan, summary)
            for violation in found:
                _say(f"  VIOLATION {violation}")
            if found:
                summary.failed.append(number)
                _say(f"  again: make torture RUNS=1 SEED={number}    logs: {folder / f'seed-{number}'}")
            number += 1
    return summary


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; each run takes the next one")
    parser.add_argument("--runs", type=int, default=0, help="how many runs; 0 for as many as fit into the time")
    parser.add_argument("--seconds", type=float, default=600, help="how long, where no number of runs is given")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="twopc-torture-"))
    counted = folder / "reached"
    counted.mkdir()
    os.environ[REACHED_VARIABLE] = str(counted)
    summary = torture(asked.seed, asked.runs, asked.seconds, folder)
    reached = points_reached(counted)
    _say(
        f"{summary.runs} runs from seed {asked.seed} on, {summary.faults} faults, {len(reached)} of {len(CrashPoint)} "
        f"crash points reached; clusters: {dict(summary.clusters)}; failed seeds: {summary.failed or 'none'}"
    )
    return 1 if summary.failed else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
