"""`python -m twopc.testing.simulation --seeds 1000 [--seed N]`: plays seeds, shows the trace of one that fails."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from twopc.testing.simulation.faults import Faults, draw
from twopc.testing.simulation.run import Result, simulate


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m twopc.testing.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many, from the first on")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="play this one only, and show its trace")
    parser.add_argument("--timeouts", action="store_true", help="let transactions expire: losses must then be loud")
    parser.add_argument("--keep-going", action="store_true", help="list every seed that fails, without traces")
    wanted = parser.parse_args(arguments)
    if wanted.seed is not None:
        result = simulate(wanted.seed, faults=_faults(wanted, wanted.seed))
        _show(result)
        return 1 if result.violations else 0
    return _play(wanted)


def _faults(wanted: argparse.Namespace, seed: int) -> Faults:
    return draw(seed, timeouts=wanted.timeouts)


def _play(wanted: argparse.Namespace) -> int:
    seeds = range(wanted.first, wanted.first + wanted.seeds)
    started = time.monotonic()
    coverage: Counter[str] = Counter()
    failed = lost = 0
    for seed in seeds:
        result = simulate(seed, faults=_faults(wanted, seed), keeps_trace=False)
        coverage += result.coverage
        lost += bool(result.lost)
        if not result.violations:
            continue
        failed += 1
        if wanted.keep_going:
            _say(f"seed {seed}: {result.violations[0][:200]}")
            continue
        _show(simulate(seed, faults=_faults(wanted, seed)))
        return 1
    seconds = time.monotonic() - started
    _say(f"{len(seeds)} seeds, {failed} failed, {lost} with a loss said aloud; {len(seeds) / seconds:.0f} seeds/s")
    for what, count in sorted(coverage.items()):
        _say(f"  {count:>8}  {what}")
    return 1 if failed else 0


def _show(result: Result) -> None:
    for line in result.trace:
        _say(line)
    _say(f"seed {result.seed}, faults: {result.faults}")
    for violation in result.violations:
        _say(f"VIOLATED: {violation}")
    _say(f"again with: python -m twopc.testing.simulation --seed {result.seed}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
