"""`python -m tests.simulation --seeds 1000 [--seed N]`: plays seeds, shows one that fails, made small."""

from __future__ import annotations

import argparse
import json
import sys
import time

from tests.simulation.play import Rules, Tally, play
from tests.simulation.shrink import Case, shrink

INTERRUPTED = 130
SAY_SECONDS = 5.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000, help="how many, from the first on")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="play this one only, and show its trace, made small if it fails")
    parser.add_argument("--case", help="play what an earlier call printed as a case, and show its trace")
    parser.add_argument("--whole", action="store_true", help="don't make a failing run small")
    parser.add_argument("--timeouts", action="store_true", help="let transactions expire: losses must then be loud")
    parser.add_argument("--processes", type=int, help="how many at once; one per core unless given")
    parser.add_argument("--keep-going", action="store_true", help="list every seed that fails, without traces")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="the form of the summary")
    wanted = parser.parse_args(arguments)
    rules = Rules(timeouts=wanted.timeouts)
    if wanted.case is not None:
        return _show(Case.from_json(wanted.case))
    if wanted.seed is not None:
        return _show_small(rules.case(wanted.seed), whole=wanted.whole)
    return _play(wanted, rules)


def _play(wanted: argparse.Namespace, rules: Rules) -> int:
    tally = Tally()
    progress = _Progress(wanted.seeds)
    interrupted = False
    shares = play(range(wanted.first, wanted.first + wanted.seeds), rules, wanted.processes)
    try:
        for share in shares:
            tally.add(share)
            progress.say(tally)
            if tally.failed and not wanted.keep_going:
                break
    except KeyboardInterrupt:
        interrupted = True
    finally:
        shares.close()
    if wanted.output == "json":
        _say(json.dumps(_summary(tally, progress, rules, interrupted), sort_keys=True))
    else:
        _report(tally, progress, rules)
    return INTERRUPTED if interrupted else 1 if tally.failed else 0


class _Progress:
    """Says now and then, beside the output, how far it is."""

    def __init__(self, seeds: int) -> None:
        self._seeds = seeds
        self._started = self._said = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def say(self, tally: Tally) -> None:
        if time.monotonic() - self._said < SAY_SECONDS:
            return
        self._said = time.monotonic()
        rate = tally.played / self.seconds
        left = (self._seeds - tally.played) / rate
        line = f"{tally.played:,} of {self._seeds:,} seeds, {len(tally.failed)} failed, {rate:.0f}/s, {left:.0f} s left"
        sys.stderr.write(line + "\n")


def _summary(tally: Tally, progress: _Progress, rules: Rules, interrupted: bool) -> dict[str, object]:
    return {
        "played": tally.played,
        "failed": {str(seed): violation for seed, violation in sorted(tally.failed.items())},
        "lost": tally.lost,
        "rules": str(rules).split(),
        "interrupted": interrupted,
        "seconds": round(progress.seconds, 1),
        "seeds_per_cpu_second": round(tally.played / tally.cpu_seconds, 1) if tally.cpu_seconds else 0.0,
        "coverage": dict(sorted(tally.coverage.items())),
    }


def _report(tally: Tally, progress: _Progress, rules: Rules) -> None:
    for seed, violation in sorted(tally.failed.items()):
        _say(f"seed {seed}: {violation[:200]}")
    if tally.failed:
        _show_small(rules.case(min(tally.failed)), whole=False)
    rate = tally.played / tally.cpu_seconds if tally.cpu_seconds else 0.0
    _say(
        f"{tally.played} seeds, {len(tally.failed)} failed, {tally.lost} with a loss said aloud; "
        f"{progress.seconds:.0f} s, {rate:.0f} seeds/s a core"
    )
    for what, count in sorted(tally.coverage.items()):
        _say(f"  {count:>8}  {what}")


def _show_small(case: Case, *, whole: bool) -> int:
    smaller = case if whole else shrink(case)
    if smaller != case:
        _say(f"seed {case.seed} fails; made small, it goes:")
    return _show(smaller)


def _show(case: Case) -> int:
    result = case.play(keeps_trace=True)
    for line in result.trace:
        _say(line)
    _say(f"seed {case.seed}, faults: {case.faults}")
    _say(f"{len(result.strikes)} strikes: {', '.join(map(str, result.strikes))}")
    for violation in result.violations:
        _say(f"VIOLATED: {violation}")
    _say(f"again with: python -m tests.simulation --case '{case.to_json()}'")
    return 1 if result.violations else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
