"""`python -m scripts.tiers test|proof [TIER...]`: run tiers one after the other, and say at the end how each ended.

Exit code: 0 when all passed, flaky tests included, 1 when one did not, 2 when another run is in the way, 130 after
Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import NoReturn

from scripts.tiers.claims import TierTaken, claimed
from scripts.tiers.results import Results
from scripts.tiers.run import Terminated, TierResult, run_tier
from scripts.tiers.scope import RunScope
from scripts.tiers.tier import TIERS, Extent

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".test-results"
CHECK = "check"
REFUSED = 2
INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Run the tiers that are named, all of them where none is."""
    parser = argparse.ArgumentParser(prog="python -m scripts.tiers", description=__doc__)
    parser.add_argument("extent", choices=[extent.value for extent in Extent])
    names = [CHECK, *(tier.name for tier in TIERS)]
    parser.add_argument("tiers", nargs="*", metavar="TIER", help=f"{', '.join(names)}; all of them unless named")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.tiers if name not in names]:
        parser.error(f"there is no tier {unknown[0]!r}: take {', '.join(names)}")
    extent = Extent(options.extent)
    signal.signal(signal.SIGTERM, _interrupt)
    began = time.monotonic()
    results: list[TierResult] = []
    chosen = options.tiers or names
    try:
        with claimed(chosen, FOLDER), RunScope() as scope:
            for name in chosen:
                print(f"== {name}", flush=True)
                result = _run(name, extent, scope)
                results.append(replace(result, left=scope.sweep()))
    except TierTaken as taken:
        print(f"tests: {taken}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print("tests: interrupted; what they had started has ended", file=sys.stderr)
        return INTERRUPTED
    print(summary(extent, results, time.monotonic() - began))
    return 1 if any(result.problem for result in results) else 0


def summary(extent: Extent, results: Sequence[TierResult], seconds: float) -> str:
    """Return the last lines of a run: a line a tier, then what failed, was flaky or outlived its tier, the verdict."""
    lines = [f"== make {extent.value}, tier by tier"]
    for result in results:
        counts = f"{result.results.passed} passed, {result.results.skipped} skipped" if result.tier != CHECK else ""
        lines.append(f"{result.tier:12} {clock(result.seconds):>6}  {result.problem or 'passed':12}  {counts}".rstrip())
    for result in results:
        lines += [f"FAILED {test}" for test in result.failed]
        text = FOLDER.relative_to(ROOT) / result.tier / "flaky.txt"
        lines += [
            f"flaky: {test} failed once and passed by itself; its first text is in {text}" for test in result.flaky
        ]
    lines += [
        f"outlived the tier {result.tier}, ended by the run: {left}" for result in results for left in result.left
    ]
    problems = [f"{result.tier} ({result.problem})" for result in results if result.problem]
    verdict = f"FAILED: {', '.join(problems)}" if problems else "passed"
    lines.append(f"make {extent.value}: {verdict} in {clock(seconds)}")
    return "\n".join(lines)


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _run(name: str, extent: Extent, scope: RunScope) -> TierResult:
    if name == CHECK:
        began = time.monotonic()
        code = subprocess.call(["make", "--no-print-directory", CHECK], cwd=ROOT)
        problem = f"ended with {code}" if code else ""
        return TierResult(CHECK, time.monotonic() - began, Results(0, 0, {}), problem=problem)
    tier = next(tier for tier in TIERS if tier.name == name)
    return run_tier(tier, extent, FOLDER / name, scope.wait)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
